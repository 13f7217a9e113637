package budget

// The prices of things in steps. Each comment ends with the package that charges the price. They were measured on the
// most expensive cases and rounded up.
const (
	// Scan is the price of a page, a step of a scan, or a count: backend/service/query/page.
	Scan = 250
	// Run is the price of measuring one sequence of an index, to choose the shortest: backend/service/query/page.
	Run = 10
	// Looked is the price of a resource of the index in memory that a scan looks at. Each value that a filter compares
	// costs one step more: backend/service/query/page.
	Looked = 2
	// Counted is the price of a resource that a store counts without reading it: backend/service/query/page.
	Counted = 4
	// Object is the price of an object with handwritten resolvers. Its fields cost extra, see Field: graph/engine.
	Object = 75
	// Field is the price of a field of such an object: graph/engine.
	Field = 15
	// SchemaValue is the price of a value that an introspection query returns: graph/engine.
	SchemaValue = 60
	// TreeNode is the price of a resource that dependencyTree visits: resolvers.
	TreeNode = 200
	// Rights is the price of a caller's rights on a resource: graph/engine.
	Rights = 40
	// Binding is the price of an AccessBinding that accessGrants looks at: backend/service/query.
	Binding = 30
	// InputValue is the price of coercing, checking and storing a value of an argument: graph/engine.
	InputValue = 10
	// FilterTimes is the factor by which the values of a filter cost more than other values, because the filter is
	// compiled: graph/engine.
	FilterTimes = 4
	// ManifestValue is the price of reading a value of a manifest: backend/service.
	ManifestValue = 40
	// YAMLByte is the price of a byte of a resource that is written as YAML: graph/engine.
	YAMLByte = 2
	// CELUnit is the price of a unit in which CEL measures the cost of a rule: backend/service/kind.
	CELUnit = 2
)

// Prices of less than a step. The constant is the number of units that cost one step.
const (
	// AnswerBytes is for the bytes of an answer: this package.
	AnswerBytes = 10
	// InputBytes is for the bytes of the texts in an argument: graph/engine.
	InputBytes = 2
	// JSONBytes is for the bytes of a resource that is written as JSON: graph/engine.
	JSONBytes = 10
	// RewrittenBytes is for the bytes of a stored resource that a write changes: backend/service.
	RewrittenBytes = 3
	// PatternTries is for the instructions of a pattern's program, each counted once for each byte of the text:
	// backend/service/kind.
	PatternTries = 40
)

// The sizes of coerced values in memory, in bytes, as measured and rounded up: graph/engine, graph/rpc.
const (
	// InputHeld is for a value, without its text.
	InputHeld = 100
	// InputObjectHeld is for an object or a map, which counts as a value too.
	InputObjectHeld = 260
)

// steps returns the price of one unit of a thing in steps.
func (t Thing) steps() int64 {
	switch t {
	case Rows:
		return 25
	case Objects:
		return 10
	}
	return 0
}
