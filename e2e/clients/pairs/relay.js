// The code of the guide for Relay, as a page has it, without React.
import { ConnectionHandler, createOperationDescriptor, fetchQuery, getRequest, getSingularSelector } from "relay-runtime";
import { relayConnection } from "@sluicegw/client/relay";
import { environment, socket } from "../relay/environment.js";
import { liveNetworks } from "../relay/live.js";
import { setMTU } from "../relay/optimistic.js";
import { save } from "../relay/update.js";
import query from "../relay/__generated__/listPaginationQuery.graphql";
import fragment from "../relay/__generated__/list_networks.graphql";
import { run } from "./scenarios.js";

const first = 4;
let operation, retained, unlink;

const connectionOf = () => environment.lookup(getSingularSelector(fragment, environment.lookup(operation.fragment).data)).data.networks;
const read = (namespace, after) => fetchQuery(environment, query, { namespace, first, after }, { fetchPolicy: "network-only" }).toPromise();

const page = {
  open: (namespace) => liveNetworks(environment, namespace, first),
  async show(namespace, list) {
    operation = createOperationDescriptor(getRequest(query), { namespace, first, after: null });
    retained = environment.retain(operation);
    await read(namespace, null);
    const connectionID = ConnectionHandler.getConnectionID("client:root", "list_networks", { namespace });
    unlink = relayConnection(list, { environment, connectionID, edgeType: "NetworkEdge" });
  },
  cached(listed) {
    const source = environment.getStore().getSource();
    const at = (record, field) => source.get(record[field].__ref);
    const record = listed && source.get(listed.id);
    if (!record) return undefined;
    const { mtu, description } = at(at(record, "spec"), "resource");
    return { metadata: { revision: at(record, "metadata").revision }, spec: { resource: { mtu, description } } };
  },
  names: () => connectionOf().edges.map(({ node }) => node.metadata.name),
  // more is what loadNext does.
  more: (namespace) => read(namespace, connectionOf().pageInfo.endCursor),
  save: (network, fields, choose) => save(environment, network, fields, choose),
  optimistic: (network, mtu) => new Promise((resolve, reject) => {
    // The guide's function says only when it fails; the store has the answer of the gateway when it succeeds.
    const { revision } = network.metadata;
    const look = setInterval(() => page.cached(network).metadata.revision !== revision && (clearInterval(look), resolve()), 5);
    setMTU(environment, network, mtu, (error) => (clearInterval(look), reject(error)));
  }),
  close(list) {
    unlink?.();
    retained?.dispose();
    list.close();
  },
};

export const play = (url, namespace, name) => run(page, url, namespace, name);
export const end = () => socket.dispose();
