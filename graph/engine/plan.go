package engine

import (
	"sync"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/query"
)

// plan is a compiled operation, for one combination of values of its Boolean variables. Selections on
// interfaces are compiled at first use; the rest never changes.
type plan struct {
	compiler *compiler
	root     *object
	// number identifies the plan in the keys of kept answers; 0 if its answers are not kept.
	number uint64
	// small is set if all answers so far took too little work to be kept. Then kept answers
	// are not looked up.
	small atomic.Bool
	// large is set if an answer took enough work to be kept.
	large atomic.Bool
}

// object is the selection on an object type.
type object struct {
	fields []field
	// links are the fields that lead to other resources, directly or below.
	links []*field
}

// field is one field of the answer.
type field struct {
	// derivedField executes the field, unless gqlgen's code does. Its write is nil for scalars of a
	// body, see [run.object].
	derivedField
	// prefix stands before the value: {"alias": or ,"alias":
	prefix []byte
	alias  string
	// above is the field that has this one in its selection, nil for a root field.
	above *field
	// nonNull and elementNonNull report whether the value, and an element of it, cannot be null.
	nonNull, elementNonNull bool
	// byCore reports whether gqlgen's code executes the field.
	byCore bool
	// list reports whether the value is a list.
	list bool
	// slot is the slot of a field of a body.
	slot int
	// otherwise is the effective default, written if the field is absent; nil for none.
	otherwise []byte
	// inner is the slot of conditions in the status.
	inner int
	// inside is the type of the objects in a body that are the field's value; nil for none.
	inside *typeInfo
	// enum has the names of enum values by their stored forms.
	enum map[string]string
	// constant is the value of a field that is the same in every answer.
	constant []byte
	// sub is the selection below an object type, abstract the one below an interface.
	sub      *object
	abstract *abstract
	// link is how the field leads to other resources, linkNone if it does not.
	link linkType
	// ref is the reference that the field resolves; inverse is the connection of the
	// resources that refer to one.
	ref     *reference
	inverse *inverse
	// relation is that of a connection of dependencies.
	relation query.Relation
	// connection reports whether the field is a connection of resources or of dependencies.
	connection bool
	// edges reports whether the field is the list of the edges of a connection.
	edges bool
	kind  *kindInfo
	// input, verb and merge describe a mutation: see rootField.
	input input
	verb  descriptor.Verb
	merge bool
	// changeCursor, ahead and total report whether a connection's change cursor, whether it has
	// another page, and its number of resources are selected.
	changeCursor, ahead, total bool
	// targets reports whether states or resources of a connection of dependencies are
	// selected.
	targets bool
	// node is the first of the merged fields; it has the arguments.
	node *ast.Field
	// set is the selections below, of all merged fields.
	set ast.SelectionSet
	// core is a root field of the core in the form that gqlgen executes.
	core *ast.Field
	// args are the arguments, if they have no variables.
	args *arguments
}

// locations returns the position of the field in the document.
func (f *field) locations() []gqlerror.Location {
	if at := f.node.Position; at != nil {
		return []gqlerror.Location{{Line: at.Line, Column: at.Column}}
	}
	return nil
}

// linkType is the way in which a field leads from a resource to others, which are read
// level by level.
type linkType uint8

const (
	linkNone linkType = iota
	// linkRef leads to one resource, linkRefs to a connection of those that a list of references names.
	linkRef
	linkRefs
	// linkInverse leads to a connection of the resources that refer to one.
	linkInverse
	// linkDependencies leads to a connection of dependencies.
	linkDependencies
)

// linked reports whether the field leads to other resources.
func (f *field) linked() bool {
	return f.link != linkNone || f.abstract != nil || f.sub != nil && len(f.sub.links) > 0
}

// on returns the selection on a kind below the field.
func (f *field) on(k *kindInfo) *object {
	if f.abstract != nil {
		return f.abstract.on(k.Name)
	}
	return f.sub
}

// abstract is a selection on an interface. It is compiled for each type when the first value of that type is written.
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
