package kinds_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// difference is a fact that the published schema and ours do not share, on purpose.
type difference struct {
	// kind, path and what of the facts; patterns of [path.Match], with / for the dots of a path.
	kind, path, what string
	// theirs and ours are the values, empty where one has none.
	theirs, ours string
	why          string
}

// differences are all that there are.
func differences() []difference {
	const (
		bounded = "every String, list and map of a spec has a maximum"
		said    = "the rule says it"
		room    = "a controller can report as many as the published spec can ask for, 256"
	)
	return []difference{
		{"*", "spec/**", "format", "", "name", "what a reference holds is the name of a resource"},
		{"*", "spec/resyncPeriod", "format", "", "duration", "the description asks for a duration"},
		{"*", "spec/resyncPeriod", "minLength", "", "1", "the empty text is no duration"},
		{"*", "spec/resyncPeriod", "maxLength", "", "64", bounded},
		{"*", "spec/*/ipVersion", "enum", "4 6", "", "the rule about ipVersion says it: there are no enums of numbers"},
		{"*", "spec/*/*/ipVersion", "enum", "4 6", "", "the rule about ipVersion says it: there are no enums of numbers"},
		{"ApplicationCredential", "spec/resource/roleRefs", "maxItems", "256", "100", "the connection of a list of references reads at most 100 at once"},
		{"ApplicationCredential", "status/resource/accessRules", "maxItems", "64", "256", room},
		{"ApplicationCredential", "status/resource/roles", "maxItems", "64", "256", room},
		{"Image", "spec/resource/content/download/url", "format", "uri", "", "the pattern says it"},
		{"Image", "spec/resource/content/download/url", "pattern", "", "^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$", "a URI as in RFC 3986, with a scheme and without spaces"},
		{"RouterInterface", "spec/type", "immutable", "", "true", said}, {"RouterInterface", "spec", "rule 1", "a rule", "", "type is @immutable"},
		{"RouterInterface", "spec/routerRef", "immutable", "", "true", said}, {"RouterInterface", "spec", "rule 2", "a rule", "", "routerRef is @immutable"},
		{"RouterInterface", "spec/subnetRef", "immutable", "", "true", said}, {"RouterInterface", "spec", "rule 3", "a rule", "", "subnetRef is @immutable, and type, which says whether there is one, too"},
		{"Server", "spec/resource/schedulerHints/additionalProperties", "maxItems", "", "64", bounded},
		{"Server", "spec/resource/schedulerHints/additionalProperties", "keyMinLength", "", "1", "no hint has an empty name"},
		{"Server", "spec/resource/schedulerHints/additionalProperties", "keyMaxLength", "", "255", bounded},
		{"Server", "spec/resource/schedulerHints/additionalProperties{}", "maxLength", "", "1024", bounded},
		{"*", "status/**", "type", "time", "string", "a controller can store any text; ISO 8601 of the cloud is not always RFC 3339"},
	}
}

// ruled says which of our rules stand for those of the published schemas, each by
// the number that it has there among the rules that compare nothing but self with oldSelf.
func ruled() []difference {
	rule := func(kind, path string, n int, message string) difference {
		return difference{kind: kind, path: path, what: fmt.Sprint("rule ", n), ours: message}
	}
	out := []difference{
		rule("*", "spec", 0, "set resource: it is required while managementPolicy is MANAGED"),
		rule("*", "spec", 1, "remove import, or set managementPolicy to UNMANAGED"),
		rule("*", "spec", 2, "remove resource, or set managementPolicy to MANAGED"),
		rule("*", "spec", 3, "set import: it is required while managementPolicy is UNMANAGED"),
		rule("*", "spec", 4, "remove managedOptions, or set managementPolicy to MANAGED"),
		rule("Image", "spec", 5, "set resource.content: it is required unless the image is imported"),
		rule("FloatingIP", "spec/resource", 0, "set either floatingNetworkRef or floatingSubnetRef"),
		rule("Port", "spec/resource", 0, "remove securityGroupRefs, or set portSecurity to ENABLED"),
		rule("Port", "spec/resource", 1, "remove allowedAddressPairs, or set portSecurity to ENABLED"),
		rule("Port", "spec/resource/hostID", 0, "set either id or serverRef, and not to an empty text"),
		rule("RoleAssignment", "spec/resource", 0, "set either userRef or groupRef"),
		rule("RoleAssignment", "spec/resource", 1, "set either projectRef or domainRef"),
		rule("RouterInterface", "spec", 0, "set subnetRef if type is SUBNET, and remove it otherwise"),
		rule("Server", "spec/resource", 0, "set imageRef or bootVolume"),
		rule("Server", "spec/resource", 1, "set either imageRef or bootVolume, not both"),
		rule("ServerGroup", "spec/resource", 0, "remove rules.maxServerPerHost, or set policy to ANTI_AFFINITY"),
		rule("ShareNetwork", "spec/resource", 0, "set both networkRef and subnetRef, or neither"),
		rule("User", "spec/resource", 0, "leave passwordRef, or name another Secret in it: a cloud does not take a password away"),
		rule("SecurityGroup", "spec/resource/rules[]", 0, "set portRange.min to at most portRange.max: protocol is TCP, UDP, DCCP, SCTP, UDPLITE or absent"),
		rule("SecurityGroup", "spec/resource/rules[]", 1, "set portRange.min to at most 255: protocol is ICMP, ICMPV6 or absent"),
		rule("SecurityGroup", "spec/resource/rules[]", 2, "set portRange.max to at most 255: protocol is ICMP, ICMPV6 or absent"),
	}
	// Rules of a field that compare it with what it was are ours on the object.
	return append(out,
		difference{kind: "AddressScope", path: "spec/resource/shared", what: "rule 0", theirs: "spec/resource", ours: "leave shared true: a cloud does not take back what it shares"},
		difference{kind: "Port", path: "spec/resource/portSecurity", what: "rule 0", theirs: "spec/resource", ours: "set portSecurity to ENABLED or DISABLED: it cannot be changed to INHERIT"},
	)
}

// matches reports whether a difference is about a fact of a kind.
func (d difference) matches(kind, where, what string) bool {
	of, _ := path.Match(d.kind, kind)
	where = strings.ReplaceAll(where, ".", "/")
	at, _ := path.Match(strings.NewReplacer("[", `\[`, "]", `\]`).Replace(d.path), where)
	if prefix, below := strings.CutSuffix(d.path, "**"); below {
		at = strings.HasPrefix(where, prefix)
	}
	return of && at && d.what == what
}

// TestEmbedded_SaysWhatThePublishedSchemasSay compares the kinds with the schemas
// that others published for them: fields, types, every constraint of a spec, and every
// maximum of a status.
// Whatever one has and not the other is listed above with its reason.
func TestEmbedded_SaysWhatThePublishedSchemasSay(t *testing.T) {
	schemas := published(t)
	known, rules, used, stand := differences(), ruled(), map[int]bool{}, map[int]bool{}
	for _, k := range kindstest.Kinds(t) {
		schema := schemas[k.Name]
		if schema == nil {
			if k.Name != "Secret" && k.Group != "access.sluice.dev" { // the product's own
				t.Errorf("%s: no schema was published", k.Name)
			}
			continue
		}
		delete(schemas, k.Name)
		theirs, ours := facts{}, facts{}
		theirs.read("spec", schema.Properties["spec"])
		theirs.read("status", schema.Properties["status"])
		ours.add("spec", "type", "object")
		ours.add("status", "type", "object")
		ours.describe("spec", k.Spec)
		ours.describe("status", k.Status)
		if len(theirs) < 20 {
			t.Errorf("%s: the schema says %d things", k.Name, len(theirs))
		}
		for i, r := range rules {
			where, place := strings.ReplaceAll(r.path, "/", "."), strings.ReplaceAll(r.path, "/", ".")
			if r.theirs != "" {
				place = strings.ReplaceAll(r.theirs, "/", ".")
			}
			if r.kind != "*" && r.kind != k.Name || theirs[where+" "+r.what] == "" || ours[place+" rule: "+r.ours] == "" {
				continue
			}
			stand[i] = true
			delete(theirs, where+" "+r.what)
			delete(ours, place+" rule: "+r.ours)
		}
		delete(ours, "spec.resource rule: set ipVersion to 4 or 6")
		delete(ours, "spec.import.filter rule: set ipVersion to 4 or 6")
		for fact := range merged(theirs, ours) {
			if theirs[fact] == ours[fact] {
				continue
			}
			where, what, _ := strings.Cut(fact, " ")
			i := slices.IndexFunc(known, func(d difference) bool {
				return d.matches(k.Name, where, what) && d.theirs == theirs[fact] && d.ours == ours[fact]
			})
			if i < 0 {
				t.Errorf("%s %s: published %q, ours %q", k.Name, fact, theirs[fact], ours[fact])
				continue
			}
			used[i] = true
		}
	}
	for i, d := range known {
		if !used[i] {
			t.Errorf("there is no such difference any more: %+v", d)
		}
	}
	for i, r := range rules {
		if !stand[i] {
			t.Errorf("there is no such rule any more: %+v", r)
		}
	}
	for kind := range schemas {
		t.Errorf("%s: a schema was published, and there is no such kind", kind)
	}
}

func merged(a, b facts) facts {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// TestEmbedded_AStatusHasRoomForWhatItsSpecAsksFor compares the fields that a kind's spec.resource and
// status.resource share by name: a controller can report all that a caller may ask for.
func TestEmbedded_AStatusHasRoomForWhatItsSpecAsksFor(t *testing.T) {
	compared := 0
	for _, k := range kindstest.Kinds(t) {
		wanted, _ := k.FieldAt("spec.resource")
		shown, _ := k.FieldAt("status.resource")
		if wanted == nil || shown == nil {
			continue
		}
		for _, in := range wanted.Shape.Fields {
			out := shown.Shape.Field(in.Name)
			if out == nil {
				continue
			}
			for what, of := range map[string][2]*int{"maxLength": {in.Constraint.MaxLength, out.Constraint.MaxLength}, "maxItems": {in.Constraint.MaxItems, out.Constraint.MaxItems}} {
				if spec, status := of[0], of[1]; spec != nil && status != nil {
					if compared++; *spec > *status {
						t.Errorf("%s: %s of %s is %d in the spec and %d in the status", k.Name, what, in.Name, *spec, *status)
					}
				}
			}
		}
	}
	if compared < 50 {
		t.Errorf("%d maxima were compared", compared)
	}
}
