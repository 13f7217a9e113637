// Documents for relay-compiler, which reads them out of this file.
import { graphql } from "relay-runtime";

export const query = graphql`
  query pagesQuery($namespace: String!, $first: Int, $after: String, $last: Int, $before: String) {
    ...pages_query @arguments(namespace: $namespace, first: $first, after: $after, last: $last, before: $before)
  }
`;

export const pages = graphql`
  fragment pages_query on Query
  @refetchable(queryName: "pagesPaginationQuery")
  @argumentDefinitions(namespace: { type: "String!" }, first: { type: "Int" }, after: { type: "String" }, last: { type: "Int" }, before: { type: "String" }) {
    networks(namespace: $namespace, first: $first, after: $after, last: $last, before: $before) @connection(key: "pages_networks", filters: ["namespace"]) {
      edges {
        node {
          id
          metadata {
            name
          }
          ...pages_network
        }
      }
    }
  }
`;

export const network = graphql`
  fragment pages_network on Network @refetchable(queryName: "pagesNetworkQuery") {
    metadata {
      revision
    }
    spec {
      resource {
        mtu
      }
    }
  }
`;

export const changes = graphql`
  subscription pagesChangesSubscription($namespace: String!) {
    networkChanges(namespace: $namespace) {
      type
      cursor
      network {
        id
        ...pages_network
      }
    }
  }
`;

export const create = graphql`
  mutation pagesCreateMutation($input: CreateNetworkInput!, $connections: [ID!]!) {
    createNetwork(input: $input) {
      network @appendNode(connections: $connections, edgeTypeName: "NetworkEdge") {
        id
        metadata {
          name
        }
      }
    }
  }
`;

export const remove = graphql`
  mutation pagesDeleteMutation($input: DeleteNetworkInput!, $connections: [ID!]!) {
    deleteNetwork(input: $input) {
      deletedNetworkId @deleteEdge(connections: $connections) @deleteRecord
    }
  }
`;

export const live = graphql`
  query pagesLiveQuery($namespace: String!, $first: Int, $after: String) {
    networks(namespace: $namespace, first: $first, after: $after) {
      changeCursor
      edges {
        node {
          id
          metadata {
            namespace
            name
            revision
          }
          ...pages_network
        }
      }
      pageInfo {
        hasNextPage
        endCursor
      }
    }
  }
`;

export const liveChanges = graphql`
  subscription pagesLiveChangesSubscription($namespace: String!, $after: String) {
    networkChanges(namespace: $namespace, after: $after) {
      type
      cursor
      network {
        id
        metadata {
          namespace
          name
          revision
        }
        ...pages_network
      }
    }
  }
`;
