import { graphql } from "./gql/index";
import type { ResultOf } from "@graphql-typed-document-node/core";

export const networks = graphql(`
  query Networks($namespace: String!) {
    networks(namespace: $namespace) {
      nodes {
        id
        subnets {
          totalCount
        }
      }
    }
  }
`);

// Each part that can fail by itself can be null by itself; the elements of a page cannot.
export function counts(result: ResultOf<typeof networks>): (number | undefined)[] {
  return result.networks?.nodes.map((n) => n.subnets?.totalCount ?? undefined) ?? [];
}

// @ts-expect-error the page may have failed
export const wrong = (result: ResultOf<typeof networks>) => result.networks.nodes;
