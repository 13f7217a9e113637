// The rules of graphql-eslint for schemas, all of them, and the exceptions with their reasons.
import graphql from "@graphql-eslint/eslint-plugin";

const exceptions = {
  // Only what can be fetched by itself has an id: a connection, a spec or a payload cannot.
  "@graphql-eslint/strict-id-in-types": "off",
  // Fields stand in the order in which a person wants to read them; types are in alphabetical order already.
  "@graphql-eslint/alphabetize": "off",
  // A list of at most 100 parts of a resource, such as its labels, needs no connection. A dependency is a reference with
  // its state: it has no id of its own, and so is no Node.
  "@graphql-eslint/relay-edge-types": ["error", { listTypeCanWrapOnlyEdgeType: false, shouldImplementNode: false }],
  // The API has mutations and subscriptions; the rule is for APIs that want none.
  "@graphql-eslint/no-root-type": "off",
  // A payload has the resource that was written. Whatever else a page shows it hears by the change stream.
  "@graphql-eslint/require-field-of-type-query-in-mutation-result": "off",
};

// Operators are the same whatever the kinds are; these are for kinds that the embedded catalogue does not have.
// The codes of errors stand in extensions, which no field describes.
export const unreachable = /^(Input object|Object|Enum) type `((Boolean|Float|Int|SafeInt)ListFilter|FloatFilter|SafeIntFilter|ErrorCode)` is unreachable\.$/;

// Kinds have the names that their manifests have.
export const kind = /^Type "VolumeType" should not have "Type" suffix$/;

// What keeps a deletion waiting is read from the first on, until nothing is left; so are namespaces, for a list to choose from.
export const forwards = /^Field `(blockedBy|namespaces)` must contain an argument `(last|before)`/;

export default [{
  files: ["**/*.graphql"],
  languageOptions: { parser: graphql.parser, parserOptions: { graphQLConfig: { schema: "./schema.graphql" } } },
  plugins: { "@graphql-eslint": graphql },
  rules: { ...graphql.configs["flat/schema-all"].rules, ...graphql.configs["flat/schema-relay"].rules, ...exceptions },
}];
