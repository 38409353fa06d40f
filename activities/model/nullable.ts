import { asArray, asObject, type JsonObject } from './json.ts';

const NULL = { type: 'null' } as const;

/** Strict mode has no optional fields: null stands for what is left out. */
export function nullable(schema: JsonObject): JsonObject {
  if (typeof schema.$ref === 'string') {
    const { $ref, ...rest } = schema;
    return { ...rest, anyOf: [{ $ref }, NULL] };
  }
  if (Array.isArray(schema.anyOf)) {
    return schema.anyOf.some(allowsNull) ? schema : { ...schema, anyOf: [...(schema.anyOf as unknown[]), NULL] };
  }
  if (allowsNull(schema)) return schema;
  const types = Array.isArray(schema.type) ? (schema.type as unknown[]) : [schema.type];
  const values = Array.isArray(schema.enum) ? { enum: [...(schema.enum as unknown[]), null] } : {};
  return { ...schema, type: [...types, 'null'], ...values };
}

function allowsNull(schema: unknown): boolean {
  const type = asObject(schema)?.type;
  return type === 'null' || asArray(type).includes('null');
}
