import { editable, networks as list, patchNetwork } from "./api.js";

const time = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

// toggle shows the change at once; if it fails, the list shows what is stored again.
async function toggle(network, onNotice) {
  const { name } = network.metadata;
  const adminStateUp = !editable(network).adminStateUp;
  try {
    await list.update(network.id, {
      change: (shown) => ({ ...shown, spec: { ...shown.spec, resource: { ...shown.spec.resource, adminStateUp } } }),
      send: (stored, expectedRevision) => patchNetwork(stored.metadata, expectedRevision, { adminStateUp }),
    });
    onNotice(`${name} is ${adminStateUp ? "up" : "down"}.`);
  } catch (error) {
    onNotice(`${name} was not changed: ${error.message}`);
  }
}

export function NetworkTable({ networks, loading, onEdit, onNotice }) {
  if (networks.length === 0) return <p className="empty">{loading ? "Loading networks…" : "There are no networks yet. Create the first one above."}</p>;
  return (
    <table>
      <caption className="hidden">Networks of all namespaces, as they are now</caption>
      <thead>
        <tr><th scope="col">Name</th><th scope="col">Description</th><th scope="col" className="number">MTU</th><th scope="col">Up</th><th scope="col">Changed</th><th scope="col"><span className="hidden">Actions</span></th></tr>
      </thead>
      <tbody>
        {networks.map((network) => {
          const { metadata: { namespace, name, revision, updatedAt } } = network;
          const { description, mtu, adminStateUp } = editable(network);
          return (
            // A new revision is a new element, so that its animation begins again.
            <tr key={network.id} data-name={name}>
              <th scope="row"><span key={revision} className="changed">{name}</span> {namespace !== "default" && <small>{namespace}</small>}</th>
              <td className="description">{description ?? <span className="none">none</span>}</td>
              <td className="number" data-label="MTU">{mtu ?? <span className="none">default</span>}</td>
              <td data-label="Up"><input type="checkbox" role="switch" checked={adminStateUp} aria-label={`${name} is up`} onChange={() => toggle(network, onNotice)} /></td>
              <td className="time" data-label="Changed"><time dateTime={updatedAt}>{time.format(new Date(updatedAt))}</time></td>
              <td className="actions"><button type="button" onClick={() => onEdit(network)} aria-label={`Edit ${name}`}>Edit</button></td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
