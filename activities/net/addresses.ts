import { BlockList, isIP } from 'node:net';

/** Networks that a URL from outside must not reach. Source: the IANA special-purpose registries (RFC 6890). */
const REFUSED: readonly string[] = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT; Alibaba's metadata lie in it
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's wire server
  '169.254.0.0/16', // link-local; the metadata of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; Oracle's metadata
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
  '2001::/23', // Teredo and other tunnels
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: another address inside
  '3fff::/20', // documentation
];

/** All that is handed out as public; so mapped, NAT64, unique local, link-local and multicast are outside. */
const PUBLIC_V6 = network('2000::/3');
const refused = networks(REFUSED);

/** Whether an address is on the public internet. */
export function isPublic(address: string): boolean {
  const family = familyOf(address);
  if (family === null) return false;
  if (family === 'ipv6' && !PUBLIC_V6.check(address, family)) return false;
  return !refused.check(address, family);
}

/** What the configuration allows besides the public internet. */
export interface Allowed {
  host(url: URL): boolean;
  address(address: string): boolean;
}

/** `entries`: host names, `host:port`, addresses, or networks such as `10.1.0.0/16`. Throws on a bad network. */
export function allowing(entries: readonly string[]): Allowed {
  const list = networks(entries.filter(isNetwork));
  const hosts = new Set(entries.filter((entry) => !isNetwork(entry)).map((entry) => entry.toLowerCase()));
  return {
    host: (url) => hosts.has(bareHost(url)) || hosts.has(`${bareHost(url)}:${portOf(url)}`),
    address: (address) => list.check(address, familyOf(address) ?? 'ipv4'),
  };
}

/** Host name without brackets and without the dot of a full name. */
export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[|\]$|\.$/g, '').toLowerCase();
}

export function portOf(url: URL): number {
  return Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
}

function isNetwork(entry: string): boolean {
  return entry.includes('/') || isIP(entry) !== 0;
}

function network(text: string): BlockList {
  return networks([text]);
}

function networks(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [address = '', bits] = text.split('/');
    const family = familyOf(address);
    if (family === null) throw new Error(`"${text}" is no network; write it as 10.1.0.0/16.`);
    list.addSubnet(address, bits === undefined ? (family === 'ipv4' ? 32 : 128) : Number(bits), family);
  }
  return list;
}

function familyOf(address: string): 'ipv4' | 'ipv6' | null {
  const family = isIP(address.split('%', 1)[0] ?? '');
  return family === 0 ? null : family === 4 ? 'ipv4' : 'ipv6';
}
