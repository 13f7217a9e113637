// What every suite needs: where the gateway is, and plain requests to it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

// base is the gateway's address, like http://127.0.0.1:8080.
export const base = process.env.SLUICE_URL ?? "http://127.0.0.1:8080";
export const endpoint = `${base}/graphql`;
// api is the version of the API that the package under test uses.
export const api = process.env.SLUICE_TEST_API ?? "v1";
export const socketEndpoint = endpoint.replace(/^http/, "ws");

// patience is how long anything may take, in milliseconds.
export const patience = 20_000;

// within fails if a promise is not kept in time.
export function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not come in ${patience} ms`)), patience);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// credential is the header of a gateway that needs one.
const credential = process.env.SLUICE_TOKEN ? { authorization: `Bearer ${process.env.SLUICE_TOKEN}` } : {};

// ask sends a query or mutation by POST and returns the whole response.
export async function ask(query, variables) {
  const response = await fetch(endpoint, {
    method: "POST",
    headers: { ...credential, "content-type": "application/json", accept: "application/graphql-response+json" },
    body: JSON.stringify({ query, variables }),
    signal: AbortSignal.timeout(patience),
  });
  return response.json();
}

// data is ask for requests that must succeed.
export async function data(query, variables) {
  const response = await ask(query, variables);
  assert.equal(response.errors, undefined, JSON.stringify(response.errors));
  return response.data;
}

let namespaces = 0;
// newNamespace is one that no other test uses.
export function newNamespace(suite) {
  return `${suite}-${process.pid}-${++namespaces}`;
}

export const spec = (mtu = 1500) => ({
  cloudCredentialsRef: { secretName: "cloud-config", cloudName: "openstack" },
  resource: { mtu },
});

// create puts networks into a namespace and returns them.
export async function create(namespace, ...names) {
  const out = [];
  for (const name of names) {
    const { createNetwork } = await data(
      `mutation ($input: CreateNetworkInput!) { createNetwork(input: $input) { network { id metadata { name revision } } } }`,
      { input: { namespace, name, spec: spec() } },
    );
    out.push(createNetwork.network);
  }
  return out;
}

// setMTU changes a network, whatever its revision.
export async function setMTU(namespace, name, mtu) {
  await data(`mutation ($input: UpsertNetworkInput!) { upsertNetwork(input: $input) { created } }`, { input: { namespace, name, spec: spec(mtu) } });
}

// dryRuns are a dry run of each verb, on a network and on one that does not exist.
export function dryRuns(namespace, { metadata: { name, revision } }) {
  const of = (more) => ({ namespace, name, dryRun: true, ...more });
  return [
    { verb: "createNetwork", input: of({ name: `${name}-new`, spec: spec(1300) }) },
    { verb: "updateNetwork", input: of({ expectedRevision: revision, spec: spec(1300) }) },
    { verb: "patchNetwork", input: of({ expectedRevision: revision, spec: { resource: { mtu: 1300 } } }) },
    { verb: "upsertNetwork", input: of({ spec: spec(1300) }) },
    { verb: "updateNetworkStatus", input: of({ expectedRevision: revision, status: { cloudId: "seen" } }) },
    { verb: "deleteNetwork", input: of() },
  ];
}

// changes is the subscription that suites use.
export const changes = `subscription Changes($namespace: String, $after: String, $snapshot: Boolean! = false) {
  networkChanges(namespace: $namespace, after: $after, snapshot: $snapshot) {
    type
    cursor
    network { id metadata { name } spec { resource { mtu } } }
  }
}`;

// schemaSDL is the schema as the gateway tells it to tools.
export async function schemaSDL() {
  const { buildClientSchema, getIntrospectionQuery, printSchema } = await import("graphql");
  const { __type } = await data(`{ __type(name: "__Type") { fields { name } } }`);
  const oneOf = __type.fields.some(({ name }) => name === "isOneOf");
  return printSchema(buildClientSchema(await data(getIntrospectionQuery({ specifiedByUrl: true, oneOf }))));
}

// workFolder is an empty folder from which packages resolve; git ignores it.
export async function workFolder(name) {
  const { mkdir, rm } = await import("node:fs/promises");
  const folder = fileURLToPath(new URL(`./.work/${name}`, import.meta.url));
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  return folder;
}

// tool runs a program of node_modules/.bin and returns what it printed.
export async function tool(folder, name, ...args) {
  const path = fileURLToPath(new URL(`./node_modules/.bin/${name}`, import.meta.url));
  const { stdout, stderr } = await promisify(execFile)(path, args, { cwd: folder, timeout: 3 * patience }).catch((error) => {
    throw new Error(`${name}: ${error.message}\n${error.stdout}${error.stderr}`);
  });
  return stdout + stderr;
}
