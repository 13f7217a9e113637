// What the page asks the gateway. GATEWAY is set by the build.
import { fetchTransport, liveList, unwrap, webStorage } from "@sluicegw/client";

const transport = fetchTransport({ url: `${GATEWAY}/v1/graphql` });
const fields = `
  id
  metadata { namespace name revision updatedAt }
  spec { resource { description mtu adminStateUp } }
`;

// networks is the list that all components show.
export const networks = liveList({
  transport,
  first: 50,
  list: `query Networks($first: Int, $after: String) {
    networks(first: $first, after: $after) {
      changeCursor
      nodes { ${fields} }
      pageInfo { hasNextPage endCursor }
    }
  }`,
  changes: `subscription NetworkChanges($after: String) {
    networkChanges(after: $after) { type cursor network { ${fields} } }
  }`,
  storage: webStorage(sessionStorage, "networks"),
});

async function ask(document, variables) {
  return unwrap(await transport.query(document, variables, {}));
}

export async function createNetwork({ name, mtu }) {
  await ask(`mutation CreateNetwork($input: CreateNetworkInput!) { createNetwork(input: $input) { network { id } } }`, {
    input: { name, spec: { cloudCredentialsRef: { secretName: "cloud-config", cloudName: "openstack" }, resource: { mtu } } },
  });
}

// editable are the fields of a network that the form edits.
export function editable({ spec }) {
  const { description, mtu, adminStateUp } = spec.resource ?? {};
  return { description: description ?? null, mtu: mtu ?? null, adminStateUp: adminStateUp ?? true };
}

// patchNetwork changes fields at the revision that the user saw, and returns the network.
export async function patchNetwork({ namespace, name }, expectedRevision, resource) {
  const { patchNetwork } = await ask(`mutation PatchNetwork($input: PatchNetworkInput!) {
    patchNetwork(input: $input) { network { ${fields} } }
  }`, { input: { namespace, name, expectedRevision, spec: { resource } } });
  return patchNetwork.network;
}

// readNetwork is a network as it is now.
export async function readNetwork({ namespace, name }) {
  const { network } = await ask(`query Network($namespace: String, $name: String!) {
    network(namespace: $namespace, name: $name) { ${fields} }
  }`, { namespace, name });
  if (!network) throw new Error(`Network ${name} was deleted.`);
  return network;
}
