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
	// number is the plan's in the keys of kept answers; 0 for a plan whose answers are not kept.
	number uint64
	// small is set if all answers so far took too little work to be kept: none is looked for.
	small atomic.Bool
	// large is set if one has not.
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
	// derivedField executes it, unless gqlgen's code does. Its write is nil for the scalars of a body, see
	// [run.object].
	derivedField
	// prefix stands before the value: {"alias": or ,"alias":
	prefix []byte
	alias  string
	// above is the field whose selection has this one, nil for a root field.
	above *field
	// nonNull and elementNonNull report whether the value, and an element of it, cannot be null.
	nonNull, elementNonNull bool
	// byCore reports whether gqlgen's code executes the field.
	byCore bool
	// list reports whether the value is a list.
	list bool
	// slot of a field of a body.
	slot int
	// otherwise is the effective default, which is written if the field is absent; nil for none.
	otherwise []byte
	// inner is the slot of conditions in the status.
	inner int
	// inside is the type of the objects of a body to which the field leads; nil if it leads to none.
	inside *typeInfo
	// enum has the names of enum values by their stored forms.
	enum map[string]string
	// constant is the value of a field that has the same in every answer.
	constant []byte
	// sub is the selection below, if its type is an object; abstract, if it is an interface.
	sub      *object
	abstract *abstract
	// link is how the field leads to other resources, linkNone if it does not.
	link linkType
	// ref of a reference, inverse of a connection of the resources that refer to one.
	ref     *reference
	inverse *inverse
	// relation of a connection of dependencies.
	relation query.Relation
	// connection reports whether the field is a connection of resources or of dependencies.
	connection bool
	// edges reports whether the field is the list of the edges of a connection.
	edges bool
	kind  *kindInfo
	// input, verb and merge are of a mutation: see rootField.
	input input
	verb  descriptor.Verb
	merge bool
	// changeCursor, ahead and total report whether a connection is asked for its change cursor, for whether it goes
	// on, and for its number of resources.
	changeCursor, ahead, total bool
	// targets reports whether a connection of dependencies is asked for states or resources.
	targets bool
	// node is the first of the merged fields; it has the arguments.
	node *ast.Field
	// set is the selections below, of all merged fields.
	set ast.SelectionSet
	// core is a root field of the core as gqlgen executes it.
	core *ast.Field
	// args are the arguments, if they have no variables.
	args *arguments
}

// locations returns the place of the field in the document.
func (f *field) locations() []gqlerror.Location {
	if at := f.node.Position; at != nil {
		return []gqlerror.Location{{Line: at.Line, Column: at.Column}}
	}
	return nil
}

// linkType is how a field leads from a resource to others, which are read level by level.
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
