package budget

// Prices in steps, and the packages that charge them. They were measured on the most expensive
// cases and rounded up.
const (
	// Scan is a page, a step of a scan, or a count: backend/service/query/page.
	Scan = 250
	// Run is a run of an index that is measured to choose the shortest: backend/service/query/page.
	Run = 10
	// Looked is a resource of the index in memory that a scan looks at. Each value that a
	// filter compares is one step more: backend/service/query/page.
	Looked = 2
	// Counted is a resource that a store counts without reading it: backend/service/query/page.
	Counted = 4
	// Object is an object that is resolved by hand, without its fields: graph/engine.
	Object = 75
	// Field is one of its fields: graph/engine.
	Field = 15
	// SchemaValue is a value that an introspection returns: graph/engine.
	SchemaValue = 60
	// TreeNode is a resource that is met on a walk of dependencyTree: resolvers.
	TreeNode = 200
	// Rights are a caller's rights on a resource: graph/engine.
	Rights = 40
	// Binding is an AccessBinding that accessGrants looks at: backend/service/query.
	Binding = 30
	// InputValue is a value of an argument that is coerced, checked and stored: graph/engine.
	InputValue = 10
	// FilterTimes is the factor by which a filter costs more than other inputs, because
	// it is compiled: graph/engine.
	FilterTimes = 4
	// ManifestValue is a value of a manifest that is read: backend/service.
	ManifestValue = 40
	// YAMLByte is a byte of a resource that is written as YAML: graph/engine.
	YAMLByte = 2
	// CELUnit is a unit of CEL's own cost of a rule: backend/service/kind.
	CELUnit = 2
)

// How much one step pays for, where that is more than one unit.
const (
	// AnswerBytes are bytes of an answer: this package.
	AnswerBytes = 10
	// InputBytes are bytes of the texts of an input: graph/engine.
	InputBytes = 2
	// JSONBytes are bytes of a resource that are written as JSON: graph/engine.
	JSONBytes = 10
	// RewrittenBytes are bytes of a stored resource that a write changes: backend/service.
	RewrittenBytes = 3
	// PatternTries are how many instructions of a pattern's program are tried on a byte:
	// backend/service/kind.
	PatternTries = 40
)

// InputHeld is the bytes that a coerced value holds besides its text: graph/engine.
const InputHeld = 100

// steps returns the price of one of a thing in steps.
func (t Thing) steps() int64 {
	switch t {
	case Rows:
		return 25
	case Objects:
		return 10
	}
	return 0
}
