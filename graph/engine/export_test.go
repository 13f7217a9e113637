package engine

import (
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// CheckFields returns what is wrong with the tables of fields: fields of the API's types that no entry executes,
// entries that cannot be written, and entries that no field of the API uses. core is the schema of the fields written
// by hand.
func (e *Engine) CheckFields(core *ast.Schema) (faults []string) {
	used := map[role]map[string]bool{}
	for name, t := range e.types {
		def := e.schema.Types[name]
		if def == nil { // the kind has no such verb
			continue
		}
		for _, f := range def.Fields {
			if !e.executes(t, f.Name, used) {
				faults = append(faults, name+"."+f.Name+": no entry")
			}
		}
	}
	for role, table := range e.derived {
		for name, entry := range table {
			if entry.write == nil {
				faults = append(faults, fmt.Sprintf("role %d, %s: no write", role, name))
			}
			if !used[role][name] {
				faults = append(faults, fmt.Sprintf("role %d, %s: no field uses it", role, name))
			}
		}
	}
	return append(faults, e.checkRoots(core)...)
}

// executes reports whether a field of a type is executed, and notes the entry that does it.
func (e *Engine) executes(t *typeInfo, name string, used map[role]map[string]bool) bool {
	if t.refs[name] != nil || strings.HasPrefix(name, "__") {
		return true
	}
	switch t.role {
	case roleShape:
		_, ok := t.slots[name]
		return ok
	case roleResource:
		if t.kind.inverses[name] != nil {
			return true
		}
	}
	if _, ok := e.derived[t.role].find(t, name); !ok {
		return false
	}
	if used[t.role] == nil {
		used[t.role] = map[string]bool{}
	}
	if t.kind != nil && name == t.kind.Singular {
		used[t.role][singularName] = true
	}
	if t.kind != nil && name == "deleted"+t.kind.Name+"Id" {
		used[t.role][deletedIDName] = true
	}
	used[t.role][name] = true
	return true
}

func (e *Engine) checkRoots(core *ast.Schema) (faults []string) {
	for _, of := range []struct{ api, core *ast.Definition }{
		{e.schema.Query, core.Query}, {e.schema.Mutation, core.Mutation}, {e.schema.Subscription, core.Subscription},
	} {
		for _, f := range of.api.Fields {
			root, ok := e.roots[fieldName{of.api.Name, f.Name}]
			byCore := strings.HasPrefix(f.Name, "__") || of.core != nil && of.core.Fields.ForName(f.Name) != nil
			switch {
			case ok == byCore:
				faults = append(faults, fmt.Sprintf("%s.%s: by the engine %v, by the core %v", of.api.Name, f.Name, ok, byCore))
			case ok && (root.compile == nil || root.write == nil):
				faults = append(faults, of.api.Name+"."+f.Name+": its entry is not complete")
			case ok && root.resolve == nil && of.api != e.schema.Subscription:
				faults = append(faults, of.api.Name+"."+f.Name+": nothing resolves it")
			}
		}
	}
	return faults
}

// InputHeld returns the number of bytes that are charged for the memory of a coerced value.
func InputHeld(v any) int { return sizeOf(v).held() }
