package access

import (
	"fmt"
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// The verbs that no kind offers. They are used only in roles.
const (
	// VerbCatalogue allows applying and reloading catalogues through the API.
	VerbCatalogue descriptor.Verb = "CATALOGUE"
	// VerbExport allows reading all resources of the store. Write-only values are encrypted or left out.
	VerbExport descriptor.Verb = "EXPORT"
	// VerbEscalate allows storing roles and bindings that give rights which the caller lacks.
	VerbEscalate descriptor.Verb = "ESCALATE"
)

// Verbs returns all verbs, in the order in which they are shown. The comment of [descriptor.Verb] lists the other
// places that must name a new verb. A verb that belongs to no kind must also be in OfNoKind.
func Verbs() []descriptor.Verb {
	return []descriptor.Verb{
		descriptor.VerbGet,
		descriptor.VerbList,
		descriptor.VerbWatch,
		descriptor.VerbCreate,
		descriptor.VerbUpdate,
		descriptor.VerbPatch,
		descriptor.VerbUpsert,
		descriptor.VerbStatus,
		descriptor.VerbFinalize,
		descriptor.VerbControl,
		descriptor.VerbDelete,
		descriptor.VerbReveal,
		VerbCatalogue,
		VerbExport,
		VerbEscalate,
	}
}

// OfNoKind returns the verbs that belong to no kind.
func OfNoKind() []descriptor.Verb { return []descriptor.Verb{VerbCatalogue, VerbExport} }

// verbs is a set of verbs. Bit i stands for the i-th verb of [Verbs], which has at most 16.
type verbs uint16

// everyVerb returns the set of all verbs.
func everyVerb() verbs { return 1<<len(Verbs()) - 1 }

// bit returns the set with one verb; the empty set if the verb is unknown.
func bit(v descriptor.Verb) verbs {
	if i := slices.Index(Verbs(), v); i >= 0 {
		return 1 << i
	}
	return 0
}

// setOf returns the set of the named verbs. "*" adds all verbs. Unknown names are ignored.
func setOf(named ...descriptor.Verb) (out verbs) {
	for _, v := range named {
		if v == Wildcard {
			return everyVerb()
		}
		out |= bit(v)
	}
	return out
}

// offered reports whether a verb can be used on resources of a kind. This is the case if the kind offers the verb, and
// for ESCALATE if the kind is AccessRole or AccessBinding. CATALOGUE and EXPORT belong to no kind.
func offered(k *descriptor.Kind, v descriptor.Verb) bool {
	if v == VerbEscalate {
		return GivesRights(k.Name)
	}
	return k.Has(v)
}

// Offers returns an error if a kind does not offer a verb.
func Offers(k *descriptor.Kind, v descriptor.Verb) error {
	if offered(k, v) {
		return nil
	}
	return &failure.Error{
		Code:    failure.CodeBadUserInput,
		Kind:    k.Name,
		Message: fmt.Sprintf("kind %s does not offer %s", k.Name, v),
	}
}
