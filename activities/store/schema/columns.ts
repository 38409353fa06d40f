import { sql } from 'drizzle-orm';
import { bigint, customType, pgSchema, timestamp } from 'drizzle-orm/pg-core';

export const pawl = pgSchema('pawl');

export const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });
export const when = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' });
export const created = () => when('created_at').notNull().default(sql`clock_timestamp()`);
export const int8 = (name: string) => bigint(name, { mode: 'number' });
