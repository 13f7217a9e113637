package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/kinds"
)

// role is the role of an object type in the API.
type role uint8

const (
	roleResource role = iota + 1
	roleShape
	roleMetadata
	roleEntry
	roleConnection
	roleEdge
	rolePageInfo
	roleDependencyConnection
	roleDependencyEdge
	roleDependency
	rolePayload
	rolePreview
	roleWarning
	roleChange
	roleSummary
	roleSummaryGroup
	roleSummaryKey
	roleNamespaceConnection
	roleNamespaceEdge
	roleNamespace
	roleNamespaceCount
)

// typeInfo describes an object type.
type typeInfo struct {
	role  role
	kind  *kindInfo   // of a resource, a connection and so on; nil for resources of any kind
	shape *body.Shape // of a part of a body
	// slots maps the API names of a shape's fields to their slots.
	slots map[string]int
	// below maps the slot of a field to the type of the objects in the field. The API can use one object type in
	// several places. If the stored bodies in these places have different fields, the object type has a typeInfo for
	// each layout.
	below map[int]*typeInfo
	// refs are the fields that resolve references, by name.
	refs map[string]*reference
}

// kindInfo is the descriptor of a kind, with tables derived from it.
type kindInfo struct {
	*descriptor.Kind
	body *body.Shape
	// spec and status are the types of these parts; status is nil if the kind has none.
	spec, status *typeInfo
	// quoted is the name of the kind as a JSON string.
	quoted   []byte
	inverses map[string]*inverse
	// orders maps the values of the kind's order enum to paths of fields.
	orders map[string]string
}

// reference is a field that resolves a reference.
type reference struct {
	kind *kindInfo
	list bool
	// slots is the path of the reference: from the root of the body if fromRoot is set, otherwise from the object with
	// the field. No step is a list.
	slots    []int
	fromRoot bool
	// otherwise is the effective default of the reference; "" if there is none.
	otherwise string
}

// inverse is a connection of the resources that refer to a resource.
type inverse struct {
	kind *kindInfo
	// path is the path of the reference in the referring kind.
	path string
}

// fieldName is the name of a field of a type.
type fieldName struct{ typ, field string }

// rootField describes how to execute a root field.
type rootField struct {
	derivedField
	kind *kindInfo // nil: of any kind
	// verb is the verb that the caller needs; empty if it depends on the input.
	verb descriptor.Verb
	// input and merge describe a mutation. merge reports whether a status is merged into the stored one instead of
	// replacing it.
	input input
	merge bool
}

// input is the form in which a mutation gets the data to write.
type input uint8

const (
	// inputNone is for queries and subscriptions.
	inputNone input = iota
	// inputTyped is an input object with API names.
	inputTyped
	// inputJSON has spec and status as JSON with stored names.
	inputJSON
	// inputManifest is the text of a manifest, with stored names.
	inputManifest
)

// sharedTypes returns the object types that do not depend on the kinds.
func sharedTypes() map[string]*typeInfo {
	return map[string]*typeInfo{
		"Metadata":                    {role: roleMetadata},
		"Label":                       {role: roleEntry},
		"Annotation":                  {role: roleEntry},
		"MapEntry":                    {role: roleEntry},
		"PageInfo":                    {role: rolePageInfo},
		"ResourceConnection":          {role: roleConnection},
		"ResourceEdge":                {role: roleEdge},
		"DependencyConnection":        {role: roleDependencyConnection},
		"DependencyEdge":              {role: roleDependencyEdge},
		"Dependency":                  {role: roleDependency},
		"Warning":                     {role: roleWarning},
		"ResourceSummary":             {role: roleSummary},
		"ResourceSummaryGroup":        {role: roleSummaryGroup},
		"ResourceSummaryKey":          {role: roleSummaryKey},
		"NamespaceConnection":         {role: roleNamespaceConnection},
		"NamespaceEdge":               {role: roleNamespaceEdge},
		"Namespace":                   {role: roleNamespace},
		"NamespaceCount":              {role: roleNamespaceCount},
		"ResourceChange":              {role: roleChange},
		"ApplyManifestPayload":        {role: rolePayload},
		"PatchResourcePayload":        {role: rolePayload},
		"UpdateResourceStatusPayload": {role: rolePayload},
		"DeleteResourcePayload":       {role: rolePayload},
		"ResourcePreview":             {role: rolePreview},
	}
}

// sharedRoots returns the root fields that do not depend on the kinds.
func sharedRoots() map[fieldName]rootField {
	write := rootField{derivedField: writeRootField(), input: inputJSON}
	patch := write
	status := write
	remove := write
	patch.verb = descriptor.VerbPatch
	status.verb = descriptor.VerbStatus
	remove.verb = descriptor.VerbDelete
	return map[fieldName]rootField{
		{"Query", "node"}:                    {derivedField: nodeRootField()},
		{"Query", "nodes"}:                   {derivedField: nodesRootField()},
		{"Query", "resource"}:                {derivedField: getRootField(), verb: descriptor.VerbGet},
		{"Query", "resources"}:               {derivedField: listRootField(), verb: descriptor.VerbList},
		{"Query", "namespaces"}:              {derivedField: namespacesRootField()},
		{"Mutation", "applyManifest"}:        {derivedField: applyRootField(), input: inputManifest, verb: descriptor.VerbUpsert},
		{"Mutation", "patchResource"}:        patch,
		{"Mutation", "updateResourceStatus"}: status,
		{"Mutation", "deleteResource"}:       remove,
		{"Subscription", "resourceChanges"}:  {derivedField: changesRootField(), verb: descriptor.VerbWatch},
	}
}

// readKinds fills the tables of types and root fields from the catalogue.
func (e *Engine) readKinds() error {
	e.types = sharedTypes()
	e.roots = sharedRoots()
	e.derived = derivedFields()
	e.enums = map[string]map[string]string{}
	e.storedNames = map[fieldName]string{}
	kinds := map[string]*kindInfo{}
	for _, bk := range e.svc.Kinds() {
		k := &kindInfo{
			Kind:     bk,
			body:     e.svc.Body(bk.Name),
			quoted:   appendText(nil, bk.Name),
			inverses: map[string]*inverse{},
			orders:   orders(bk),
		}
		kinds[bk.Name] = k
		e.addKind(k)
	}
	for _, k := range kinds {
		for _, r := range k.References {
			if err := e.addReference(k, r, kinds); err != nil {
				return fmt.Errorf("kind %s: %w", k.Name, err)
			}
		}
	}
	return nil
}

// orders returns the values of a kind's order enum with the paths that they stand for.
func orders(k *descriptor.Kind) map[string]string {
	out := sharedOrders()
	for _, i := range k.FilterableFields {
		if i.Sortable {
			out[kinds.OrderValue(k.APIPath(i.Path))] = i.Path
		}
	}
	return out
}

// sharedOrders returns the orders that all kinds have.
func sharedOrders() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"name", "namespace", "createdAt", "updatedAt"} {
		out[kinds.OrderValue(name)] = name
	}
	return out
}

// addKind adds the types and root fields of a kind.
func (e *Engine) addKind(k *kindInfo) {
	e.types[k.Name] = &typeInfo{role: roleResource, kind: k, refs: map[string]*reference{}}
	e.types[k.Name+"Connection"] = &typeInfo{role: roleConnection, kind: k}
	e.types[k.Name+"Edge"] = &typeInfo{role: roleEdge, kind: k}
	e.types[k.Name+"Change"] = &typeInfo{role: roleChange, kind: k}
	k.spec = e.addShape(k.body.Fields[body.SlotSpec].Shape, k.Spec)
	if k.Status != nil {
		k.status = e.addShape(k.body.Fields[body.SlotStatus].Shape, k.Status)
	}
	e.roots[fieldName{"Query", k.Singular}] = rootField{derivedField: getRootField(), kind: k, verb: descriptor.VerbGet}
	e.roots[fieldName{"Query", k.Plural}] = rootField{derivedField: listRootField(), kind: k, verb: descriptor.VerbList}
	e.roots[fieldName{"Query", kinds.SummaryField(k.Plural)}] = rootField{
		derivedField: summaryRootField(), kind: k, verb: descriptor.VerbList,
	}
	e.roots[fieldName{"Subscription", k.Singular + "Changes"}] = rootField{
		derivedField: changesRootField(), kind: k, verb: descriptor.VerbWatch,
	}
	write := rootField{derivedField: writeRootField(), kind: k, input: inputTyped}
	for verb, name := range map[descriptor.Verb]string{
		descriptor.VerbCreate: "create" + k.Name,
		descriptor.VerbUpdate: "update" + k.Name,
		descriptor.VerbPatch:  "patch" + k.Name,
		descriptor.VerbUpsert: "upsert" + k.Name,
		descriptor.VerbDelete: "delete" + k.Name,
		descriptor.VerbStatus: "update" + k.Name + "Status",
	} {
		write.verb = verb
		e.roots[fieldName{"Mutation", name}] = write
		e.types[strings.ToUpper(name[:1])+name[1:]+"Payload"] = &typeInfo{role: rolePayload, kind: k}
	}
	write.verb = descriptor.VerbStatus
	write.merge = true
	e.roots[fieldName{"Mutation", "patch" + k.Name + "Status"}] = write
	e.types["Patch"+k.Name+"StatusPayload"] = &typeInfo{role: rolePayload, kind: k}
}

// addShape adds the object type of a spec or status, or of an object in one, with its enums and the types below it. s
// is its shape in stored bodies, which is usually the same wherever the type occurs. The descriptor's shape has the
// fields of the API.
func (e *Engine) addShape(s *body.Shape, of *descriptor.Shape) *typeInfo {
	first := e.types[s.Name]
	if first != nil && sameLayout(first.shape, s) {
		return first
	}
	t := &typeInfo{
		role:  roleShape,
		shape: s,
		slots: map[string]int{},
		below: map[int]*typeInfo{},
		refs:  map[string]*reference{},
	}
	if first == nil {
		e.types[s.Name] = t
	}
	for i := range of.Fields {
		f := &of.Fields[i]
		slot, _ := s.Slot(f.Name) // it has a slot: stored bodies have all fields of the API
		t.slots[f.InAPI()] = slot
		if f.APIName != "" {
			for _, input := range []string{kinds.InputType(s.Name), kinds.PatchType(s.Name), kinds.FilterType(s.Name)} {
				e.storedNames[fieldName{input, f.APIName}] = f.Name
			}
		}
		if f.Enum != nil && e.enums[f.Enum.Name] == nil {
			stored := make(map[string]string, len(f.Enum.Values))
			for _, v := range f.Enum.Values {
				stored[v.Name] = v.Stored
			}
			e.enums[f.Enum.Name] = stored
		}
		if f.Shape != nil {
			t.below[slot] = e.addShape(s.Fields[slot].Shape, f.Shape)
		}
	}
	return t
}

// sameLayout reports whether two shapes have the same fields in the same slots, including the objects in them.
func sameLayout(a, b *body.Shape) bool {
	if a == b {
		return true
	}
	return a != nil && b != nil && slices.EqualFunc(a.Fields, b.Fields, func(x, y body.Field) bool {
		return x.Name == y.Name && sameLayout(x.Shape, y.Shape)
	})
}

// addReference adds the field that resolves a reference, and the inverse connection. If the reference stands directly
// in spec or spec.resource, the kind itself gets the field; otherwise the object with the reference does.
func (e *Engine) addReference(k *kindInfo, r descriptor.Reference, kinds map[string]*kindInfo) error {
	slots, f, err := k.body.Find(r.Path)
	if err != nil {
		return err
	}
	target := kinds[r.Kind]
	if target == nil {
		return fmt.Errorf("reference %s: kind %s is not known", r.Path, r.Kind)
	}
	ref := &reference{kind: target, list: f.List, slots: slots, fromRoot: true}
	if f.Default != nil {
		ref.otherwise = body.Text(f.Default)
	}
	owner, listed := k.body, false
	for _, slot := range slots[:len(slots)-1] {
		listed = listed || owner.Fields[slot].List
		owner = owner.Fields[slot].Shape
	}
	typ := e.types[k.Name]
	if parent := r.Path[:strings.LastIndex(r.Path, ".")]; parent != "spec" && (parent != "spec.resource" || listed) {
		typ = k.spec
		for _, slot := range slots[1 : len(slots)-1] {
			typ = typ.below[slot]
		}
		ref.slots = slots[len(slots)-1:]
		ref.fromRoot = false
	}
	typ.refs[r.Field] = ref
	if r.Inverse != "" {
		target.inverses[r.Inverse] = &inverse{kind: k, path: r.Path}
	}
	return nil
}
