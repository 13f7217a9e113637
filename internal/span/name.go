package span

import "go.opentelemetry.io/otel/attribute"

// The names of spans. The names of the spans of requests, verbs and calls of services also have variable parts: see
// [Spans].
const (
	Lock     = "lock"
	Relate   = "relate"
	Queue    = "queue"
	Commit   = "commit"
	Pipeline = "pipeline"
	Read     = "read"
	Level    = "read level"
	Deliver  = "deliver"
	Follow   = "reconcile"
)

// The attributes of spans. Names without the prefix sluice are from OpenTelemetry's semantic conventions.
const (
	Method        attribute.Key = "http.request.method"
	Route         attribute.Key = "http.route"
	Status        attribute.Key = "http.response.status_code"
	Scheme        attribute.Key = "url.scheme"
	Path          attribute.Key = "url.path"
	Protocol      attribute.Key = "network.protocol.version"
	ClientAddress attribute.Key = "client.address"
	ErrorType     attribute.Key = "error.type"
	OperationName attribute.Key = "graphql.operation.name"
	OperationType attribute.Key = "graphql.operation.type"
	System        attribute.Key = "db.system.name"
	StoreCall     attribute.Key = "db.operation.name"
	BatchSize     attribute.Key = "db.operation.batch.size"
	RPCSystem     attribute.Key = "rpc.system"
	RPCService    attribute.Key = "rpc.service"
	RPCMethod     attribute.Key = "rpc.method"
	GRPCStatus    attribute.Key = "rpc.grpc.status_code"
	ConnectError  attribute.Key = "rpc.connect_rpc.error_code"
	RequestID     attribute.Key = "sluice.request.id"
	API           attribute.Key = "sluice.api"
	Kind          attribute.Key = "sluice.kind"
	Document      attribute.Key = "sluice.document.hash"
	Kept          attribute.Key = "sluice.kept"
	Steps         attribute.Key = "sluice.steps"
	Verb          attribute.Key = "sluice.verb"
	UID           attribute.Key = "sluice.resource.uid"
	Outcome       attribute.Key = "sluice.outcome"
	DryRun        attribute.Key = "sluice.dry_run"
	Attempts      attribute.Key = "sluice.attempts"
	References    attribute.Key = "sluice.references"
	Waits         attribute.Key = "sluice.waits"
	Field         attribute.Key = "sluice.field"
	Resources     attribute.Key = "sluice.resources"
	Pages         attribute.Key = "sluice.pages"
	Shard         attribute.Key = "sluice.shard"
	Bytes         attribute.Key = "sluice.bytes"
	Group         attribute.Key = "sluice.group"
	Sync          attribute.Key = "sluice.sync.seconds"
	Change        attribute.Key = "sluice.change"
	WriteTrace    attribute.Key = "sluice.write.trace_id"
	Service       attribute.Key = "sluice.service"
)

// Described describes a span or an attribute for operators.
type Described struct {
	// Name is the name of the span or attribute. Variable parts of a span's name are in capitals.
	Name string
	// Kind is the OpenTelemetry kind of the span; empty for an attribute.
	Kind string
	// Meaning explains the span or attribute in a sentence, without the full stop.
	Meaning string
	// Attributes are the attributes that the span may have.
	Attributes []attribute.Key
}

// Spans returns the descriptions of all spans of a gateway.
func Spans() []Described {
	return []Described{
		{"METHOD ROUTE", "server", "a request, until it is answered, or until its stream or WebSocket has begun; none for `/healthz`, `/readyz` and `/metrics`", []attribute.Key{
			Method, Route, Status, Scheme, Path, Protocol, ClientAddress, RequestID, ErrorType,
		}},
		{"query, mutation, subscription", "internal", "an operation, with parsing; a subscription until it has begun", []attribute.Key{
			OperationType, OperationName, Kind, Document, API, Steps, Kept, ErrorType,
		}},
		{"SERVICE/METHOD", "internal", "a call over gRPC, gRPC-Web or Connect; a stream until it has begun", []attribute.Key{
			RPCSystem, RPCService, RPCMethod, GRPCStatus, ConnectError, Kind, API, Steps, ErrorType,
		}},
		{"VERB KIND", "internal", "a write of one resource, such as `UPDATE Network`; `APPLY` until its manifest is read", []attribute.Key{
			Verb, Kind, Outcome, DryRun, UID, Attempts, ErrorType,
		}},
		{Lock, "internal", "the wait for another write of the same resource at this gateway", nil},
		{Relate, "internal", "resolving the references of the resource", []attribute.Key{References, Waits}},
		{Read, "internal", "the read of a root field of a query", []attribute.Key{Field, Kind}},
		{Level, "internal", "the read of the references and connections of one level of an answer", []attribute.Key{Resources, Pages}},
		{"store CALL", "client on Redis, else internal", "a call of the store: `Apply` (a write), `Get`, `Range`, `Head`, `Position`, `Sync`", []attribute.Key{
			System, StoreCall, BatchSize, Bytes, Shard, Resources, ErrorType,
		}},
		{Queue, "internal", "the wait of a write for its commit, or to be sent to Redis", nil},
		{Commit, "internal", "the commit of a group of writes in the embedded store", []attribute.Key{Group, Bytes, Sync}},
		{Pipeline, "internal", "a group of writes to Redis, until it is answered", []attribute.Key{Group, Bytes}},
		{"service METHOD", "client", "a call of a resource service", []attribute.Key{
			RPCSystem, RPCService, RPCMethod, Service, ErrorType,
		}},
		{Deliver, "consumer", "making an event from a change, for one subscription, several equal ones, or a stream over gRPC. It begins its own trace, linked to the write", []attribute.Key{
			OperationType, OperationName, RPCSystem, RPCService, RPCMethod, Kind, Change, UID, WriteTrace,
		}},
		{Follow, "internal", "the work that follows from writes: re-evaluating resources that waited, and finishing deletions. It begins its own trace, linked to the writes", []attribute.Key{
			Resources, Shard,
		}},
	}
}

// Attributes returns the descriptions of all attributes of spans.
func Attributes() []Described {
	return []Described{
		attributeOf(Method, "the method of the request"),
		attributeOf(Route, "the path as the gateway knows it; missing for a path that it does not serve"),
		attributeOf(Status, "the status of the answer"),
		attributeOf(Scheme, "`http` or `https`"),
		attributeOf(Path, "the path of the request, without its query; missing where the route is"),
		attributeOf(Protocol, "the version of HTTP"),
		attributeOf(ClientAddress, "the address of the client"),
		attributeOf(ErrorType, "the code of the error (`extensions.code`); in spans of the store and of services, the kind of "+
			"error; `aborted` or `panic` for a request whose answer was cut off"),
		attributeOf(OperationName, "the name of the operation in the document"),
		attributeOf(OperationType, "`query`, `mutation` or `subscription`"),
		attributeOf(System, "`redis` or `bbolt`"),
		attributeOf(StoreCall, "the call of the store"),
		attributeOf(BatchSize, "how many resources are written and checked, or asked for"),
		attributeOf(RPCSystem, "`grpc`, also for gRPC-Web, or `connect_rpc`"),
		attributeOf(RPCService, "the service as its protocol calls it"),
		attributeOf(RPCMethod, "the method, such as `Write`"),
		attributeOf(GRPCStatus, "the number of the code over gRPC and gRPC-Web; 0 is OK"),
		attributeOf(ConnectError, "the code of an error over Connect, such as `not_found`"),
		attributeOf(RequestID, "the request id, if it is not the id of the trace"),
		attributeOf(API, "the released version of the API, or `unreleased`"),
		attributeOf(Kind, "the kind of the resource, or of the first root field"),
		attributeOf(Document, "the SHA-256 of the document, as in the log"),
		attributeOf(Kept, "true if a kept answer was given"),
		attributeOf(Steps, "how many steps of `limit-steps` the operation took"),
		attributeOf(Verb, "the verb of the write"),
		attributeOf(UID, "the uid of the resource"),
		attributeOf(Outcome, "the outcome of the write, as in the API"),
		attributeOf(DryRun, "whether nothing was written"),
		attributeOf(Attempts, "how often the write was attempted, if others wrote the same resource"),
		attributeOf(References, "how many resources the written one refers to"),
		attributeOf(Waits, "how many of its references the written resource waits for"),
		attributeOf(Field, "the root field"),
		attributeOf(Resources, "how many resources were found, are read, or are handled"),
		attributeOf(Pages, "how many pages are read"),
		attributeOf(Shard, "the number of the shard"),
		attributeOf(Bytes, "the bytes of the write, or of all writes of the group"),
		attributeOf(Group, "how many writes were committed or sent together"),
		attributeOf(Sync, "how long writing and syncing the file took"),
		attributeOf(Change, "the type of the event, such as `MODIFIED`"),
		attributeOf(WriteTrace, "the id of the trace of the write"),
		attributeOf(Service, "the name of the service in the settings"),
	}
}

func attributeOf(key attribute.Key, meaning string) Described {
	return Described{Name: string(key), Meaning: meaning}
}
