import { replacing, type Stage } from './stage.ts';

const EMBEDDED = /data:image\/[\w.+-]+;base64,[A-Za-z0-9+/=]+/g;

/** Images from before the place where the provider refused them. Always applied. */
export const stripImages: Stage = (shown) => {
  const refusedAt = shown.findLastIndex((message) => message.kind === 'reminder' && message.code === 'images_stripped');
  if (refusedAt < 0) return { shown, freedTokens: 0 };
  return replacing(shown, Infinity, (message, n) => {
    if (n >= refusedAt || !message.text.includes('data:image/')) return null;
    const text = message.text.replace(EMBEDDED, '[an image that the provider refused; not shown]');
    return text === message.text ? null : { ...message, text };
  });
};
