// The code of the guide for urql, as a page has it. Its saves are optimistic.
import { gql } from "@urql/core";
import { client } from "../urql/client.js";
import { liveNetworks, networksQuery } from "../urql/live.js";
import { save } from "../urql/update.js";
import { run } from "./scenarios.js";

const first = 4;
const patch = gql`
  mutation SetMTU($input: PatchNetworkInput!) {
    patchNetwork(input: $input) { network { id metadata { namespace name revision } spec { resource { mtu description } } } }
  }
`;
let nodes = [], query;

const page = {
  open: (namespace) => liveNetworks(namespace, first),
  async show(namespace) {
    query = client.query(networksQuery, { namespace, first }).subscribe(({ data }) => data && (nodes = data.networks.nodes));
  },
  // cached is the network as it is in the rows of the page.
  cached: (listed) => nodes.find(({ id }) => id === listed?.id),
  names: () => nodes.map(({ metadata }) => metadata.name),
  more: (namespace, list) => list.more(),
  save,
  async optimistic({ id, metadata: { revision } }, mtu) {
    const { error } = await client.mutation(patch, { input: { id, expectedRevision: revision, spec: { resource: { mtu } } } });
    if (error) throw error;
  },
  close(list) {
    query?.unsubscribe();
    list.close();
  },
};

export const play = (url, namespace, name) => run(page, url, namespace, name);
