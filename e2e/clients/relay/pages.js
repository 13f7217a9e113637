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

export const dryCreate = graphql`
  mutation pagesDryCreateMutation($input: CreateNetworkInput!) {
    written: createNetwork(input: $input) {
      network {
        id
        ...pages_network
      }
      preview {
        kind
        namespace
        name
        uid
        generation
        specJSON
        statusJSON
        manifest
      }
    }
  }
`;

export const dryUpdate = graphql`
  mutation pagesDryUpdateMutation($input: UpdateNetworkInput!) {
    written: updateNetwork(input: $input) {
      network {
        id
        ...pages_network
      }
      preview {
        kind
        namespace
        name
        uid
        generation
        specJSON
        statusJSON
        manifest
      }
    }
  }
`;

export const dryPatch = graphql`
  mutation pagesDryPatchMutation($input: PatchNetworkInput!) {
    written: patchNetwork(input: $input) {
      network {
        id
        ...pages_network
      }
      preview {
        kind
        namespace
        name
        uid
        generation
        specJSON
        statusJSON
        manifest
      }
    }
  }
`;

export const dryUpsert = graphql`
  mutation pagesDryUpsertMutation($input: UpsertNetworkInput!) {
    written: upsertNetwork(input: $input) {
      network {
        id
        ...pages_network
      }
      preview {
        kind
        namespace
        name
        uid
        generation
        specJSON
        statusJSON
        manifest
      }
    }
  }
`;

export const dryDelete = graphql`
  mutation pagesDryDeleteMutation($input: DeleteNetworkInput!) {
    written: deleteNetwork(input: $input) {
      network {
        id
        ...pages_network
      }
      preview {
        kind
        namespace
        name
        uid
        generation
        specJSON
        statusJSON
        manifest
      }
    }
  }
`;

export const dryUpdateStatus = graphql`
  mutation pagesDryUpdateStatusMutation($input: UpdateNetworkStatusInput!) {
    written: updateNetworkStatus(input: $input) {
      network {
        id
        ...pages_network
      }
      preview {
        kind
        namespace
        name
        uid
        generation
        specJSON
        statusJSON
        manifest
      }
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
