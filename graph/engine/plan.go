package engine

import (
	"sync"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// op is how a field is written; of a root field, how it is executed.
type op uint8

const (
	opConst op = iota
	// Of a resource.
	opID
	opSubKind
	opAPIVersion
	opMetadata
	opManifest
	opSpecJSON
	opStatusJSON
	opConditions
	opAllowed
	opRef
	opRefs
	opInverse
	opDependencies
	opDependents
	opBlockedBy
	// Of an object of a body.
	opScalar
	opEnum
	opFloat
	opTime
	opScalars
	opMap
	opObject
	opObjects
	// Of metadata.
	opNamespace
	opName
	opUID
	opRevision
	opGeneration
	opLabels
	opAnnotations
	opDescription
	opUpdatedBy
	opCreatedAt
	opUpdatedAt
	opExpiresAt
	opDeletionRequestedAt
	opFinalizers
	// Of an entry of a map, a label or an annotation.
	opKey
	opValue
	// Of a connection, its edges and its page info.
	opEdges
	opNodes
	opPageInfo
	opTotalCount
	opHiddenCount
	opUnreadableCount
	opPageChangeCursor
	opCursor
	opNode
	opHasNextPage
	opHasPreviousPage
	opStartCursor
	opEndCursor
	// Of a dependency on a page of them.
	opOtherID
	opOtherKind
	opOtherNamespace
	opOtherName
	opOtherPath
	opOtherState
	opOtherGuarded
	opOther
	// Of payloads and changes.
	opMutationID
	opWritten
	opPreview
	opPreviewKind
	opPreviewUID
	opWarnings
	opOutcome
	opDryRun
	opCreated
	opDeletedID
	opDeletion
	opBlockers
	opWarningCode
	opMessage
	opPlace
	opPlaceText
	opChangeType
	opChangeCursor
	opChangeRevision
	opChangeID
	opChanged
	// Of a summary.
	opUnreadableSummary
	opGroups
	opGroupKeys
	opGroupCount
	opGroupPath
	opGroupValue
	// Of a namespace.
	opNamespaceName
	opNamespaceCounts
	opCountKind
	opCount
	// Of the roots.
	opGet
	opList
	opSummary
	opNamespaces
	opNodeByID
	opNodesByID
	opWrite
	opApply
	opChanges
	opCore
)

// plan is a compiled operation, for one combination of values of its Boolean variables. Selections on
// interfaces are compiled at first use; the rest never changes.
type plan struct {
	compiler *compiler
	root     *object
}

// object is the selection on an object type.
type object struct {
	fields []field
	// links are the fields that lead to other resources, directly or below.
	links []*field
}

// field is one field of the answer.
type field struct {
	// prefix stands before the value: {"alias": or ,"alias":
	prefix []byte
	alias  string
	// above is the field whose selection has this one, nil for a root field.
	above *field
	op    op
	// nonNull and elementNonNull report whether the value, and an element of it, cannot be null.
	nonNull, elementNonNull bool
	// slot of a field of a body.
	slot int
	// otherwise is the effective default, which is written if the field is absent; nil for none.
	otherwise []byte
	// inner is the slot of conditions in the status.
	inner int
	// enum has the names of enum values by their stored forms.
	enum map[string]string
	// constant is the value of opConst.
	constant []byte
	// sub is the selection below, if its type is an object; abstract, if it is an interface.
	sub      *object
	abstract *abstract
	ref      *reference
	inverse  *inverse
	kind     *kindInfo
	verb     descriptor.Verb
	merge    bool // see rootField
	// changeCursor, ahead and total report whether a connection is asked for its change cursor, for whether it goes on, and
	// for its number of resources.
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

// linked reports whether the field leads to other resources.
func (f *field) linked() bool {
	switch f.op {
	case opRef, opRefs, opInverse, opDependencies, opDependents, opBlockedBy:
		return true
	}
	return f.abstract != nil || f.sub != nil && len(f.sub.links) > 0
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
