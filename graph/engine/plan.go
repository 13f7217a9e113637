package engine

import (
	"sync"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/query"
)

// plan is a compiled operation, for one combination of values of its Boolean variables. Selections on interfaces are
// compiled at first use; everything else is immutable.
type plan struct {
	compiler *compiler
	root     *object
	// number identifies the plan in the keys of kept answers; 0 if its answers are not kept.
	number uint64
	// small is set while all answers were too cheap to be kept. Then no answer is looked up in the cache.
	small atomic.Bool
	// large is set once an answer was expensive enough to be kept.
	large atomic.Bool
}

// object is a selection on an object type.
type object struct {
	fields []field
	// links are the fields that read other resources, and the fields whose selections contain such fields.
	links []*field
}

// field is a field of the answer. Fields of the document that are merged become one field.
type field struct {
	// derivedField executes the field, unless byCore is set. Its write is nil for scalars of a body; see [run.object].
	derivedField
	// prefix is what precedes the value: {"alias": or ,"alias":
	prefix []byte
	alias  string
	// above is the field whose selection has this field; nil for a root field.
	above *field
	// nonNull reports whether the value must not be null, and elementNonNull whether its elements must not be.
	nonNull, elementNonNull bool
	// byCore reports whether gqlgen's code executes the field.
	byCore bool
	// list reports whether the value is a list.
	list bool
	// slot is the slot of the field, if it is a field of a body.
	slot int
	// otherwise is the effective default, which is written if the field is absent; nil if there is none.
	otherwise []byte
	// inner is the slot of the conditions in the status.
	inner int
	// inside is the type of the object, or of the list elements, that a field of a body has; nil for other fields.
	inside *typeInfo
	// enum maps the stored forms of enum values to their API names.
	enum map[string]string
	// constant is the value of a field that has the same value in every answer.
	constant []byte
	// sub is the selection below the field if its type is an object type; abstract is set if its type is an interface.
	sub      *object
	abstract *abstract
	// link is how the field reads other resources; linkNone if it reads none.
	link linkType
	// ref is the reference that the field resolves. inverse is set if the field is a connection of referring resources.
	ref     *reference
	inverse *inverse
	// relation is set for a connection of dependencies.
	relation query.Relation
	// connection reports whether the field is a connection of resources or of dependencies.
	connection bool
	// edges reports whether the field is the list of the edges of a connection.
	edges bool
	kind  *kindInfo
	// input, verb and merge describe a mutation; see rootField.
	input input
	verb  descriptor.Verb
	merge bool
	// changeCursor, ahead and total report whether the selection on a connection needs its change cursor, whether there
	// is another page, and the number of its resources.
	changeCursor, ahead, total bool
	// targets reports whether the selection on a connection of dependencies needs their states or resources.
	targets bool
	// node is the first of the merged fields in the document. It has the arguments.
	node *ast.Field
	// set has the selections of all merged fields.
	set ast.SelectionSet
	// core is the field in the form in which gqlgen's code executes it; set for root fields of the core.
	core *ast.Field
	// args are the arguments, if they contain no variables; else nil.
	args *arguments
}

// locations returns the position of the field in the document.
func (f *field) locations() []gqlerror.Location {
	if at := f.node.Position; at != nil {
		return []gqlerror.Location{{Line: at.Line, Column: at.Column}}
	}
	return nil
}

// linkType is the way in which a field reads other resources. Links are read level by level.
type linkType uint8

const (
	linkNone linkType = iota
	// linkRef reads the resource that a reference names. linkRefs reads a connection of the resources that a list of
	// references names.
	linkRef
	linkRefs
	// linkInverse reads a connection of the resources that refer to a resource.
	linkInverse
	// linkDependencies reads a connection of dependencies.
	linkDependencies
)

// linked reports whether the field, or a field in its selection, may read other resources.
func (f *field) linked() bool {
	return f.link != linkNone || f.abstract != nil || f.sub != nil && len(f.sub.links) > 0
}

// on returns the selection below the field for resources of a kind.
func (f *field) on(k *kindInfo) *object {
	if f.abstract != nil {
		return f.abstract.on(k.Name)
	}
	return f.sub
}

// abstract is a selection on an interface. For each type it is compiled when the first value of that type is written.
type abstract struct {
	compiler *compiler
	field    *field
	mu       sync.Mutex // guards types
	types    map[string]*object
}

func (a *abstract) on(typ string) *object {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := a.types[typ]
	if o == nil {
		o = a.compiler.object(a.compiler.engine.schema.Types[typ], a.field.set, a.field)
		if a.types == nil {
			a.types = map[string]*object{}
		}
		a.types[typ] = o
	}
	return o
}
