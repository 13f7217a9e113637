// What the page asks for; Relay's compiler reads it out of this file, and Apollo sends the same texts.
import { graphql } from "relay-runtime";

export const hosts = graphql`
  query documentsHostsQuery($namespace: String!) {
    hosts(namespace: $namespace) {
      nodes {
        id
        metadata {
          name
          revision
        }
        spec {
          title
          disks {
            cloudId
            size
          }
        }
      }
      totalCount
    }
  }
`;

export const needs = graphql`
  query documentsNeedsQuery($namespace: String!, $name: String!) {
    host(namespace: $namespace, name: $name) {
      id
      dependencies {
        nodes {
          resourceId
          name
          path
          state
        }
      }
    }
  }
`;

export const tree = graphql`
  query documentsTreeQuery($id: ID!) {
    dependencyTree(id: $id, direction: DEPENDENCIES) {
      dependencies {
        resourceId
        name
        level
        state
      }
    }
  }
`;

export const key = graphql`
  query documentsKeyQuery($namespace: String!, $name: String!) {
    key(namespace: $namespace, name: $name) {
      id
      metadata {
        name
        revision
      }
      spec {
        owner
      }
    }
  }
`;

export const reveal = graphql`
  query documentsRevealQuery($namespace: String!, $name: String!) {
    reveal(kind: "Key", namespace: $namespace, name: $name) {
      resourceId
      name
      revision
      values {
        path
        text
      }
    }
  }
`;

export const create = graphql`
  mutation documentsCreateMutation($input: CreateHostInput!) {
    written: createHost(input: $input) {
      host {
        id
        metadata {
          name
          revision
        }
        spec {
          title
        }
      }
      preview {
        name
        specJSON
      }
    }
  }
`;

export const update = graphql`
  mutation documentsUpdateMutation($input: UpdateHostInput!) {
    written: updateHost(input: $input) {
      host {
        id
        metadata {
          name
          revision
        }
        spec {
          title
        }
      }
      preview {
        name
        specJSON
      }
    }
  }
`;

export const remove = graphql`
  mutation documentsDeleteMutation($input: DeleteHostInput!) {
    written: deleteHost(input: $input) {
      deletedHostId
      host {
        id
      }
      preview {
        name
        specJSON
      }
    }
  }
`;
