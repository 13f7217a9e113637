// graphql-js over the API's schema and stored JSON: the reference that
// reference_test.go holds the gateway against. It reads one JSON object from
// its input and prints one answer for each operation, a line each. What the API
// means is written here a second time, in the plainest way: every read looks
// through all resources.
import { readFileSync } from "node:fs";
import { buildSchema, execute, getOperationAST, getVariableValues, parse, validate, valueFromASTUntyped } from "graphql";

const input = JSON.parse(readFileSync(0, "utf8"));
const schema = buildSchema(input.api);
const catalogue = parse(input.catalogue).definitions;

// Variables of the API's own scalars are judged before anything is executed; literals where they are used.
function scalar(name, accepts) {
  Object.assign(schema.getType(name), {
    parseLiteral: valueFromASTUntyped,
    parseValue(value) {
      if (!accepts(value)) throw new TypeError(`no ${name}`);
      return value;
    },
  });
}
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;
scalar("Time", (value) => typeof value === "string" && time.test(value) && !Number.isNaN(Date.parse(value)));
scalar("SafeInt", Number.isSafeInteger);

const argumentsOf = (node) => Object.fromEntries(node.arguments.map((a) => [a.name.value, valueFromASTUntyped(a.value)]));
const directive = (node, name) => {
  const found = node.directives.find((d) => d.name.value === name);
  return found && argumentsOf(found);
};
const storedName = (field) => directive(field, "stored")?.as ?? field.name.value;
const named = (type) => (type.type ? named(type.type) : type.name.value);
const isList = (type) => type.kind === "ListType" || (type.type !== undefined && isList(type.type));
const find = (name) => catalogue.find((d) => d.name.value === name);
const lowerFirst = (text) => text[0].toLowerCase() + text.slice(1);
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

const kinds = catalogue
  .filter((d) => directive(d, "resource"))
  .map((d) => ({ name: d.name.value, type: d, singular: lowerFirst(d.name.value), verbs: ["GET", "LIST"], ...directive(d, "resource") }));

function kindOf(text, verb) {
  const kind = kinds.find((k) => [k.name, k.singular, k.plural].some((name) => name.toLowerCase() === text.toLowerCase()));
  if (!kind) throw new Error(`there is no kind ${text}`);
  if (!kind.verbs.includes(verb)) throw new Error(`${kind.name} does not offer ${verb}`);
  return kind;
}

// referencesOf are the references below a type: where each is declared, what
// its field is called, and its value or values in a body.
function referencesOf(type, path, values, inList = false) {
  return type.fields.flatMap((field) => {
    const name = field.name.value;
    const stored = storedName(field);
    const below = (object) => [values(object)].flat().flatMap((v) => v?.[stored] ?? []);
    const target = find(named(field.type));
    const ref = directive(field, "ref");
    if (ref) {
      const kind = kinds.find((k) => k.name === ref.kind);
      const list = isList(field.type);
      const stem = name.replace(/Refs?$/, "");
      const called = ref.as ?? (!list ? stem : stem === kind.singular ? kind.plural : `${stem}s`);
      const atRoot = path === "spec" || (path === "spec.resource" && !inList);
      return [{ ...ref, list, stored, field: called, owner: atRoot ? null : type, path: [...path.split("."), name], values: below }];
    }
    if (target?.kind !== "ObjectTypeDefinition") return [];
    return referencesOf(target, `${path}.${name}`, below, inList || isList(field.type));
  });
}
for (const kind of kinds) {
  kind.references = referencesOf(find(named(kind.type.fields.find((f) => f.name.value === "spec").type)), "spec", (body) => body.spec);
}

const resources = input.resources.map((r) => ({ ...r, kind: kinds.find((k) => k.name === r.kind), namespace: r.namespace || null }));
const byName = (a, b) => compare(a.namespace ?? "", b.namespace ?? "") || compare(a.name, b.name);
resources.sort(byName);

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
function checkNamespace(namespace) {
  if (namespace != null && !(namespace.length <= 63 && label.test(namespace))) throw new Error("namespace");
}

// identified is the resource that a field names: by id, or by namespace and name.
function identified(kind, { id, namespace, name }, info) {
  const given = info.fieldNodes[0].arguments.find((a) => a.name.value === "namespace");
  if ((id == null) === (name == null)) throw new Error("id or name");
  if (id == null) return get(kind, namespace, name);
  if (given && valueFromASTUntyped(given.value, info.variableValues) != null) throw new Error("id and namespace");
  return byID(kind, id);
}

// byID is the resource of an id: the format, kind, namespace and name, each text ended by a zero byte.
function byID(kind, id) {
  const raw = /^[-_A-Za-z0-9]+$/.test(id) ? Buffer.from(id, "base64url") : Buffer.alloc(0);
  const [of, namespace, at, ...rest] = raw.subarray(1).toString().split("\0").map((text) => text.replace(/^\x02/, ""));
  if (raw[0] !== 1 || rest.length !== 1 || raw.toString("base64url") !== id || of !== kind.name) throw new Error("not an id of the kind");
  return resourceOf(resources.find((r) => r.kind === kind && (r.namespace ?? "") === namespace && r.name === at));
}

function get(kind, namespace, name) {
  checkNamespace(namespace);
  if (kind.scope === "GLOBAL" && namespace != null) throw new Error("a GLOBAL kind has no namespaces");
  if (!name.split(".").every((part) => label.test(part))) throw new Error("name");
  const at = kind.scope === "GLOBAL" ? null : (namespace ?? "default");
  return resourceOf(resources.find((r) => r.kind === kind && r.namespace === at && r.name === name));
}

// checkFilter refuses operators without a value, and objects without an operator.
function checkFilter(filter) {
  const operators = (object) => {
    const values = Object.values(object);
    if (!values.length || values.some((v) => v === null)) throw new Error("an operator has no value");
  };
  for (const [key, value] of Object.entries(filter ?? {})) {
    if (value == null) continue;
    if (key === "and" || key === "or") value.forEach(checkFilter);
    else if (key === "not") checkFilter(value);
    else if (key === "labels") value.forEach(({ key, ...rest }) => operators(rest));
    else operators(value);
  }
}

// keeps says whether a filter of the random operations keeps a resource.
function keeps(filter, r) {
  return Object.entries(filter ?? {}).every(([key, value]) => {
    if (value == null) return true;
    switch (key) {
      case "and":
        return value.every((one) => keeps(one, r));
      case "or":
        return value.some((one) => keeps(one, r));
      case "not":
        return !keeps(value, r);
      case "labels":
        return value.every(({ key, eq }) => key in (r.body.metadata?.labels ?? {}) && (eq == null || r.body.metadata.labels[key] === eq));
      case "name":
        return (value.in == null || value.in.includes(r.name)) && (value.startsWith == null || r.name.startsWith(value.startsWith));
    }
    throw new Error(`the reference has no filter ${key}`);
  });
}

const orders = { NAME: (r) => r.name, NAMESPACE: (r) => r.namespace ?? "", CREATED_AT: (r) => Date.parse(r.createdAt), UPDATED_AT: (r) => Date.parse(r.updatedAt) };

function list(kind, all, { namespace, filter, orderBy, first, last, after, before }) {
  checkNamespace(namespace);
  checkFilter(filter);
  const found = all.filter((r) => r.kind === kind && (namespace == null || r.namespace === namespace) && keeps(filter, r));
  found.sort((a, b) => {
    for (const { field, direction } of orderBy ?? []) {
      const order = compare(orders[field](a), orders[field](b));
      if (order) return direction === "DESC" ? -order : order;
    }
    return byName(a, b);
  });
  return page(found, resourceOf, { first, last, after, before });
}

// page is one of a connection of all that was found.
function page(found, show, { first, last, after, before }) {
  if (after || before) throw new Error("the reference makes no cursors");
  if (first != null && last != null) throw new Error("first and last");
  const size = last ?? first ?? 100;
  if (size < 0 || size > 1000) throw new Error("the size of the page");
  const part = last != null ? found.slice(Math.max(found.length - last, 0)) : found.slice(0, size);
  const cut = part.length < found.length;
  return {
    nodes: part.map(show),
    edges: part.map((one) => ({ node: show(one) })),
    pageInfo: { hasNextPage: cut && last == null, hasPreviousPage: cut && last != null },
    totalCount: found.length,
    unreadableCount: 0,
    hiddenCount: 0,
  };
}

const byBytes = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));

// idOf is a global id, also of what is not there: see byID.
const idOf = (kind, namespace, name) => Buffer.from("\x01" + [kind.name, namespace ?? "", name].map((text) => `\x02${text}\0`).join("")).toString("base64url");

// namespaceFrom is where resources of a namespace find one of a kind by its name.
const namespaceFrom = (kind, namespace) => (kind.scope === "GLOBAL" ? null : namespace);

// links are the references that a resource has: by their declaration and by name.
function links(r) {
  return r.kind.references.flatMap((ref) => {
    const to = kinds.find((k) => k.name === ref.kind);
    const names = [...new Set(ref.values(r.body).filter((name) => name !== ""))].sort(byBytes);
    return names.map((name) => {
      const target = resources.find((t) => t.kind === to && t.namespace === namespaceFrom(to, r.namespace) && t.name === name);
      const waits = (r.body.metadata.waits ?? []).includes(`${to.name}/${name}`);
      const state = !target ? "MISSING" : !waits ? "BOUND" : target.body.metadata.deletionRequestedAt ? "DELETING" : "NOT_READY";
      return { from: r, to, name, target, state, path: ref.path.join("."), guarded: ref.guarded ?? false };
    });
  });
}

// linksTo are the references that others have to a resource, or it has itself.
const linksTo = (r) =>
  resources
    .flatMap(links)
    .filter((link) => link.target === r)
    .sort((a, b) => byBytes(a.from.kind.name, b.from.kind.name) || byName(a.from, b.from) || byBytes(a.path, b.path));

// dependency shows a reference by its other end.
const dependency = (kind, namespace, name, resource) => (link) => ({
  ...{ resourceId: idOf(kind(link), namespace(link), name(link)), kind: kind(link).name, namespace: namespace(link), name: name(link) },
  ...{ path: link.path, state: link.state, guarded: link.guarded, resource: () => resourceOf(resource(link)) },
});
const upwards = dependency((l) => l.to, (l) => namespaceFrom(l.to, l.from.namespace), (l) => l.name, (l) => l.target);
const downwards = dependency((l) => l.from.kind, (l) => l.from.namespace, (l) => l.from.name, (l) => l.from);
const readable = (kind) => kind.verbs.includes("GET");

const entries = (map) =>
  Object.entries(map ?? {})
    .map(([key, value]) => ({ key, value }))
    .sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));

// follow is the field that a reference derives.
function follow(r, ref, values) {
  const kind = kinds.find((k) => k.name === ref.kind);
  const here = resources.filter((t) => t.kind === kind && t.namespace === namespaceFrom(kind, r.namespace) && values.includes(t.name));
  return ref.list ? (args) => list(kind, here, args) : resourceOf(here[0]);
}

// part is an object of a body, by its type in the catalogue.
function part(r, type, object) {
  if (object == null) return object;
  const out = {};
  for (const field of type.fields) {
    const name = field.name.value;
    const target = find(named(field.type));
    const one = (v) => {
      if (target?.kind === "ObjectTypeDefinition") return part(r, target, v);
      if (target?.kind === "EnumTypeDefinition") return target.values.find((e) => (directive(e, "stored")?.as ?? e.name.value) === v).name.value;
      return v;
    };
    const value = object[storedName(field)];
    if (value == null) { // its effective value, if it has one
      if (directive(field, "default")) out[name] = directive(field, "default").value;
      continue;
    }
    out[name] = directive(field, "map") ? entries(value) : Array.isArray(value) ? value.map(one) : one(value);
  }
  for (const ref of r.kind.references.filter((ref) => ref.owner === type)) {
    Object.defineProperty(out, ref.field, { get: () => follow(r, ref, [object[ref.stored] ?? []].flat()) });
  }
  return out;
}

// shown is an object without what is write-only.
function shown(type, object) {
  const out = {};
  for (const field of type.fields) {
    const value = object[storedName(field)];
    if (value == null || directive(field, "writeOnly")) continue;
    const target = find(named(field.type));
    const one = (v) => (target?.kind === "ObjectTypeDefinition" ? shown(target, v) : v);
    out[storedName(field)] = Array.isArray(value) ? value.map(one) : one(value);
  }
  return out;
}

// sorted has the members of all objects in the order of their names.
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
}

function resourceOf(r) {
  if (!r) return null;
  const { body, kind } = r;
  const partOf = (name) => part(r, find(named(kind.type.fields.find((f) => f.name.value === name)?.type ?? { name: {} })), body[name]);
  const out = {
    __typename: kind.name,
    id: r.id,
    kind: kind.name,
    subKind: body.subKind,
    apiVersion: kind.group ? `${kind.group}/${body.version}` : body.version,
    metadata: {
      ...{ namespace: r.namespace, name: r.name, uid: r.uid, revision: r.revision, createdAt: r.createdAt, updatedAt: r.updatedAt, expiresAt: r.expiresAt },
      generation: body.metadata?.generation ?? 0,
      description: body.metadata?.description || null,
      labels: entries(body.metadata?.labels),
      annotations: entries(body.metadata?.annotations),
      deletionRequestedAt: body.metadata?.deletionRequestedAt,
      finalizers: body.metadata?.finalizers ?? [],
    },
    dependencies: (args) => page(links(r).filter((l) => readable(l.to)), upwards, args),
    dependents: (args) => page(linksTo(r).filter((l) => readable(l.from.kind)), downwards, args),
    blockedBy: (args) => page(linksTo(r).filter((l) => readable(l.from.kind) && l.guarded && l.state === "BOUND" && l.from !== r), downwards, args),
    spec: () => partOf("spec"),
    status: () => partOf("status"),
    specJSON: () => sorted(shown(find(named(kind.type.fields.find((f) => f.name.value === "spec").type)), body.spec)),
    statusJSON: () => sorted(body.status ?? null),
    conditions: () => (find(named(kind.type.fields.find((f) => f.name.value === "status")?.type ?? { name: {} }))?.fields.some((f) => f.name.value === "conditions") ? body.status?.conditions ?? [] : null),
  };
  for (const ref of kind.references.filter((ref) => !ref.owner)) out[ref.field] = (args) => {
    const value = follow(r, ref, ref.values(body));
    return ref.list ? value(args) : value;
  };
  for (const from of kinds) {
    for (const ref of from.references.filter((ref) => ref.kind === kind.name && ref.inverse)) {
      out[ref.inverse] = (args) =>
        list(from, resources.filter((f) => f.kind === from && r.namespace === namespaceFrom(kind, f.namespace) && ref.values(f.body).includes(r.name)), args);
    }
  }
  return out;
}

function node({ id }) {
  const r = resources.find((r) => r.id === id);
  if (!r) throw new Error("not an id");
  if (!r.kind.verbs.includes("GET")) throw new Error("no GET");
  return resourceOf(r);
}

const root = {
  node,
  nodes: ({ ids }) =>
    ids.map((id) => {
      try {
        return node({ id });
      } catch (error) {
        return error; // of this element
      }
    }),
  resource: ({ kind, ...args }, _, info) => identified(kindOf(kind, "GET"), args, info),
  resources: ({ kind: name, ...args }) => {
    const kind = kindOf(name, "LIST");
    if (kind.scope === "GLOBAL" && args.namespace != null) throw new Error("a GLOBAL kind has no namespaces");
    return list(kind, resources, args);
  },
};
for (const kind of kinds) {
  root[kind.singular] = (args, _, info) => identified(kind, args, info);
  root[kind.plural] = (args) => list(kind, resources, args);
}

function answer({ query, variables }) {
  let document;
  try {
    document = parse(query);
  } catch (error) {
    return { refused: [error.message] };
  }
  const errors = validate(schema, document);
  if (errors.length) return { refused: errors.map((e) => e.message) };
  const operation = getOperationAST(document);
  const { errors: wrong } = getVariableValues(schema, operation.variableDefinitions ?? [], variables);
  if (wrong) return { refused: wrong.map((e) => e.message) };
  if (operation.operation !== "query") return {};
  const result = execute({ schema, document, rootValue: root, variableValues: variables });
  return { data: result.data, errors: (result.errors ?? []).map((e) => ({ message: e.message, path: e.path })) };
}

for (const operation of input.operations) console.log(JSON.stringify(answer(operation)));
