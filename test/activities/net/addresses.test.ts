import { expect, it } from 'vitest';
import { allowing, isPublic } from '../../../activities/net/addresses.ts';

it.each([
  '0.0.0.0',
  '10.0.0.1',
  '100.64.0.1',
  '100.100.100.200', // metadata of Alibaba
  '127.0.0.1',
  '127.255.255.254',
  '168.63.129.16', // wire server of Azure
  '169.254.169.254', // metadata of most clouds
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192', // metadata of Oracle
  '192.168.1.1',
  '198.18.0.1',
  '224.0.0.1',
  '239.255.255.250',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:8.8.8.8',
  '::ffff:127.0.0.1',
  '::127.0.0.1',
  '64:ff9b::a00:1', // NAT64 of 10.0.0.1
  '64:ff9b:1::1',
  '100::1',
  '2001::1', // Teredo
  '2001:db8::1',
  '2002:7f00:1::', // 6to4 of 127.0.0.1
  'fc00::1',
  'fd00:ec2::254', // metadata of AWS
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
  'not an address',
])('%s is not public', (address) => {
  expect(isPublic(address)).toBe(false);
});

it.each([
  '1.1.1.1',
  '172.15.255.255',
  '172.32.0.1',
  '100.63.255.255',
  '100.128.0.1',
  '223.255.255.255',
  '2606:4700::1111',
  '2a00:1450::1',
])('%s is public', (address) => {
  expect(isPublic(address)).toBe(true);
});

it('the configuration allows names, names with a port, addresses and networks', () => {
  const allowed = allowing(['forge.internal', 'localhost:3000', '10.1.0.0/16', '::1', 'fd12::/16']);
  const host = (url: string) => allowed.host(new URL(url));
  expect([host('http://FORGE.internal./x'), host('https://forge.internal:8443')]).toEqual([true, true]);
  expect([host('http://localhost:3000'), host('http://localhost:3001'), host('http://x.forge.internal')]).toEqual([
    true,
    false,
    false,
  ]);
  expect(
    ['10.1.2.3', '10.2.0.1', '::1', '::2', 'fd12:3::4', 'fd13::1'].map((address) => allowed.address(address)),
  ).toEqual([true, false, true, false, true, false]);
  expect(() => allowing(['10.1.0.0/16', 'name/8'])).toThrow('"name/8" is no network');
});
