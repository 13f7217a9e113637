// The code of the guide for Apollo, as a page has it.
import { gql } from "@apollo/client";
import { fields } from "../shared/documents.js";
import { client, socket } from "../apollo/client.js";
import { watchNetworks } from "../apollo/list.js";
import { follow } from "../apollo/live.js";
import { setMTU } from "../apollo/optimistic.js";
import { save } from "../apollo/update.js";
import { run } from "./scenarios.js";

const first = 4;
const row = gql`fragment Row on Network { ${fields} }`;
let shown, more, watch;
const cached = (network) => network && client.cache.readFragment({ id: `Network:${network.id}`, fragment: row });

const page = {
  async show(namespace) {
    const { query, more: next } = watchNetworks(namespace, first);
    more = next;
    watch = query.subscribe(({ data }) => data?.networks && (shown = data.networks));
  },
  open: (namespace) => follow(namespace, first),
  cached,
  optimistically: (network) => network && client.cache.readFragment({ id: `Network:${network.id}`, fragment: row, optimistic: true }),
  names: () => (shown?.edges ?? []).map(({ node }) => node.metadata.name),
  more: () => more(shown),
  save,
  optimistic: setMTU,
  close(list) {
    watch?.unsubscribe();
    list.close();
  },
};

export const play = (url, namespace, name) => run(page, url, namespace, name);
export const end = () => {
  client.stop();
  socket.dispose();
};
