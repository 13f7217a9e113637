import { graphql } from "./gql/index";
import type { ResultOf, VariablesOf } from "@graphql-typed-document-node/core";

export const networks = graphql(`
  query Networks($namespace: String!, $filter: NetworkFilter) {
    networks(namespace: $namespace, filter: $filter, first: 10) {
      edges {
        cursor
        node {
          id
          metadata {
            name
            revision
            createdAt
          }
          spec {
            managementPolicy
            resource {
              mtu
            }
          }
        }
      }
      pageInfo {
        hasNextPage
      }
      totalCount
    }
  }
`);

export const changes = graphql(`
  subscription Changes($after: String) {
    networkChanges(after: $after) {
      type
      cursor
      network {
        id
      }
    }
  }
`);

// What the types must say.
export const variables: VariablesOf<typeof networks> = { namespace: "default", filter: { spec: { resource: { mtu: { gte: 1500 } } } } };

export function mtus(result: ResultOf<typeof networks>): number[] {
  return result.networks.edges.flatMap((e) => e.node.spec.resource?.mtu ?? []);
}

export function count(result: ResultOf<typeof networks>): number {
  return result.networks.totalCount;
}

export function last(result: ResultOf<typeof changes>): string | null | undefined {
  return result.networkChanges.cursor;
}

// @ts-expect-error namespace is required
export const wrong: VariablesOf<typeof networks> = {};
