/** @type {WeakMap<object, string>} */
const printed = new WeakMap();

/**
 * textOf returns the text of a document: of a string, of a TypedDocumentString, and of a parsed document, as `gql`, graphql-js and
 * code generators make it.
 * @param {any} document
 * @returns {string}
 */
export function textOf(document) {
  if (typeof document === "string") return document;
  if (document instanceof String) return document.toString();
  if (document?.kind !== "Document") throw new TypeError("a document is a text or a parsed document");
  const known = printed.get(document);
  if (known !== undefined) return known;
  const text = print(document);
  printed.set(document, text);
  return text;
}

/**
 * isQuery reports whether all operations of a document are queries.
 * @param {any} document
 */
export function isQuery(document) {
  if (document?.kind === "Document") {
    return document.definitions.every((/** @type {any} */ { kind, operation }) => kind !== "OperationDefinition" || operation === "query");
  }
  let depth = 0;
  for (const [token] of textOf(document).matchAll(tokens)) {
    if ("{([".includes(token)) depth++;
    else if ("})]".includes(token)) depth--;
    else if (depth === 0 && (token === "mutation" || token === "subscription")) return false;
  }
  return true;
}

// Block strings, strings, comments, names and brackets.
const tokens = /"""(?:\\"""|[^])*?"""|"(?:\\.|[^"\\\n])*"|#[^\n\r]*|[_A-Za-z]\w*|[{}()[\]]/g;

/** @param {ReadonlyArray<any> | undefined} nodes @param {string} [separator] @returns {string} */
const all = (nodes, separator = " ") => (nodes ?? []).map(print).join(separator);
/** @param {string} open @param {string} text @param {string} close */
const within = (open, text, close) => (text ? open + text + close : "");
/** @param {any} node */
const directives = (node) => within(" ", all(node.directives), "");

/** How each kind of node of an executable document is written. @type {Record<string, (node: any) => string>} */
const printers = {
  Document: ({ definitions }) => all(definitions, "\n"),
  OperationDefinition: (node) => `${node.operation}${within(" ", node.name?.value ?? "", "")}${within("(", all(node.variableDefinitions), ")")}${directives(node)} ${print(node.selectionSet)}`,
  VariableDefinition: (node) => `${print(node.variable)}: ${print(node.type)}${node.defaultValue ? ` = ${print(node.defaultValue)}` : ""}${directives(node)}`,
  FragmentDefinition: (node) => `fragment ${node.name.value} on ${print(node.typeCondition)}${directives(node)} ${print(node.selectionSet)}`,
  SelectionSet: ({ selections }) => `{ ${all(selections)} }`,
  Field: (node) => `${within("", node.alias?.value ?? "", ": ")}${node.name.value}${within("(", all(node.arguments), ")")}${directives(node)}${node.selectionSet ? ` ${print(node.selectionSet)}` : ""}`,
  FragmentSpread: (node) => `...${node.name.value}${directives(node)}`,
  InlineFragment: (node) => `...${node.typeCondition ? ` on ${print(node.typeCondition)}` : ""}${directives(node)} ${print(node.selectionSet)}`,
  Argument: (node) => `${node.name.value}: ${print(node.value)}`,
  Directive: (node) => `@${node.name.value}${within("(", all(node.arguments), ")")}`,
  Variable: (node) => `$${node.name.value}`,
  NamedType: (node) => node.name.value,
  ListType: (node) => `[${print(node.type)}]`,
  NonNullType: (node) => `${print(node.type)}!`,
  IntValue: ({ value }) => value,
  FloatValue: ({ value }) => value,
  EnumValue: ({ value }) => value,
  BooleanValue: ({ value }) => String(value),
  NullValue: () => "null",
  // A block string is written as the same text in quotes.
  StringValue: ({ value }) => JSON.stringify(value),
  ListValue: ({ values }) => `[${all(values)}]`,
  ObjectValue: ({ fields }) => `{${all(fields)}}`,
  ObjectField: (node) => `${node.name.value}: ${print(node.value)}`,
};

/** @param {any} node @returns {string} */
function print(node) {
  const printer = printers[node.kind];
  if (!printer) throw new TypeError(`a document to be executed has no ${node.kind}`);
  return printer(node);
}
