package rpc

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	kinds "github.com/sluicegw/sluice/backend/service/kind"
)

// input is the decoded resource of a request.
type input struct {
	identity kinds.Identity
	subKind  string
	metadata service.Metadata
	revision string
	spec     map[string]any
	// labels and annotations are the keys of the resource's labels and annotations, in the same order as in metadata.
	labels, annotations []string
	// values is the number of values in the spec, and objects is the number of those that are objects or maps. texts is
	// the number of bytes of its strings.
	values, objects, texts int
}

// decoder decodes a resource. It collects all violations.
type decoder struct {
	found                  []failure.Violation
	values, objects, texts int
	// withdrawn is [Config.Withdrawn].
	withdrawn string
}

func (d *decoder) refuse(at *failure.Path, rule, format string, args ...any) {
	if len(d.found) < maxViolations {
		d.found = append(d.found, failure.Violation{
			Path: at.Text(failure.APINames), Rule: rule, Message: fmt.Sprintf(format, args...),
		})
	}
}

// maxViolations is the maximum number of violations in an error.
const maxViolations = 100

// maxSafe is the maximum value of a SafeInt.
const maxSafe = 1<<53 - 1

// decode decodes the resource of a request.
func (k *kind) decode(m protoreflect.Message) (*input, error) {
	d := decoder{withdrawn: k.withdrawn}
	out := &input{identity: kinds.Identity{Kind: k.Name}}
	d.known(m, nil)
	given := strings.ReplaceAll(m.Get(k.fields.kind).String(), "_", "") // some write kinds as security_group
	if given != "" && !strings.EqualFold(given, strings.ReplaceAll(k.Name, "_", "")) {
		d.refuse(failure.At("kind"), "in", "must be %s, or left out", k.Name)
	}
	if given := m.Get(k.fields.version).String(); given != "" && given != k.Version {
		d.refuse(failure.At("version"), "in", "must be %s, or left out", k.Version)
	}
	out.subKind = m.Get(k.fields.subKind).String()
	metadata := m.Get(k.fields.metadata).Message()
	d.known(metadata, failure.At("metadata"))
	d.metadata(k, metadata, out)
	if m.Has(k.fields.spec) {
		out.spec = d.object(k.spec, m.Get(k.fields.spec).Message(), failure.At("spec"))
	} else {
		d.refuse(failure.At("spec"), "required", "must be given; it may be empty")
	}
	out.values, out.objects, out.texts = d.values, d.objects, d.texts
	return out, d.err(k)
}

// err returns an error with all violations; nil if there are none.
func (d *decoder) err(k *kind) error {
	if len(d.found) == 0 {
		return nil
	}
	return &failure.Error{
		Code:       failure.CodeBadUserInput,
		Kind:       k.Name,
		Message:    d.found[0].Path + ": " + d.found[0].Message,
		Violations: d.found,
	}
}

// known adds a violation if a message has unknown fields. Their values would be lost.
func (d *decoder) known(m protoreflect.Message, at *failure.Path) {
	unknown := m.GetUnknown()
	if len(unknown) == 0 {
		return
	}
	if at == nil {
		at = failure.At("resource")
	}
	number, _, _ := protowire.ConsumeTag(unknown)
	d.refuse(at, "unknown", "has a field %d, which this gateway does not know%s", number, after(d.withdrawn))
}

// metadata decodes the metadata. It replaces all stored metadata. Fields that the gateway sets are ignored.
func (d *decoder) metadata(k *kind, m protoreflect.Message, out *input) {
	text := func(name protoreflect.Name) string { return m.Get(fieldOf(m, name)).String() }
	out.identity.Name = text("name")
	if namespace := text("namespace"); namespace != "" {
		out.identity.Namespace = &namespace
	}
	out.revision = text("revision")
	out.metadata.Description = service.Optional[string]{Set: true, Value: text("description")}
	out.metadata.Labels, out.labels = pairs(m, "labels")
	out.metadata.Annotations, out.annotations = pairs(m, "annotations")
	expires := fieldOf(m, "expires")
	out.metadata.ExpiresAt.Set = k.Expires
	if m.Has(expires) {
		at := failure.At("metadata").Name("expiresAt")
		if t, ok := d.time(m.Get(expires).Message(), at); ok {
			out.metadata.ExpiresAt = service.ExpiresAt(t)
		}
	}
}

// pairs decodes labels or annotations, which replace all stored ones. It returns them sorted by key. keys has the keys
// in the same order.
func pairs(m protoreflect.Message, name protoreflect.Name) (out service.Optional[[]service.Label], keys []string) {
	out.Set = true
	given := m.Get(fieldOf(m, name)).Map()
	given.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, key.String())
		return true
	})
	slices.Sort(keys)
	for _, key := range keys {
		value := given.Get(protoreflect.ValueOfString(key).MapKey()).String()
		out.Value = append(out.Value, service.Label{Key: key, Value: value})
	}
	return out, keys
}

// time decodes a google.protobuf.Timestamp.
func (d *decoder) time(m protoreflect.Message, at *failure.Path) (time.Time, bool) {
	fields := m.Descriptor().Fields()
	seconds := m.Get(fields.ByNumber(1)).Int()
	nanos := m.Get(fields.ByNumber(2)).Int()
	if seconds < minTime || seconds > maxTime || nanos < 0 || nanos >= 1e9 {
		d.refuse(at, "format", "must be a time from the years 1 to 9999, with 0 to 999999999 nanoseconds")
		return time.Time{}, false
	}
	return time.Unix(seconds, nanos).UTC(), true
}

// The smallest and the largest number of seconds in a google.protobuf.Timestamp.
const (
	minTime = -62135596800
	maxTime = 253402300799
)

// object decodes an object to stored form.
func (d *decoder) object(s *shape, m protoreflect.Message, at *failure.Path) map[string]any {
	d.values++
	d.objects++
	d.known(m, at)
	out := map[string]any{}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		f := s.byNumber[fd.Number()]
		inside := at.Name(fd.JSONName())
		if f == nil {
			d.refuse(inside, "unknown", "cannot be set here")
			return true
		}
		switch {
		case fd.IsMap():
			out[f.Name] = d.entries(v.Map())
		case fd.IsList():
			out[f.Name] = d.list(f, v.List(), inside)
		default:
			if value := d.value(f, v, inside); value != nil {
				out[f.Name] = value
			}
		}
		return true
	})
	return out
}

func (d *decoder) entries(m protoreflect.Map) map[string]any {
	d.objects++
	out := make(map[string]any, m.Len())
	m.Range(func(key protoreflect.MapKey, v protoreflect.Value) bool {
		d.values++
		d.texts += len(key.String()) + len(v.String())
		out[key.String()] = v.String()
		return true
	})
	return out
}

func (d *decoder) list(f *field, l protoreflect.List, at *failure.Path) []any {
	out := make([]any, 0, l.Len())
	for i := range l.Len() {
		if value := d.value(f, l.Get(i), at.Element(i)); value != nil {
			out = append(out, value)
		}
	}
	return out
}

// value decodes a value that is neither a list nor a map. It returns nil after it has added a violation.
func (d *decoder) value(f *field, v protoreflect.Value, at *failure.Path) any {
	d.values++
	switch f.Type {
	case descriptor.TypeObject:
		return d.object(f.shape, v.Message(), at)
	case descriptor.TypeInt:
		return json.Number(strconv.FormatInt(v.Int(), 10))
	case descriptor.TypeSafeInt:
		if n := v.Int(); n < -maxSafe || n > maxSafe {
			d.refuse(at, "range", "must be within -(2^53-1) and 2^53-1")
			return nil
		}
		return json.Number(strconv.FormatInt(v.Int(), 10))
	case descriptor.TypeFloat:
		n := v.Float()
		if math.IsNaN(n) || math.IsInf(n, 0) {
			d.refuse(at, "range", "must be a finite number")
			return nil
		}
		raw, _ := json.Marshal(n) // a finite number always marshals
		return json.Number(raw)
	case descriptor.TypeBoolean:
		return v.Bool()
	case descriptor.TypeEnum:
		stored, ok := f.stored[v.Enum()]
		if !ok {
			d.refuse(at, "in", "must be a value of the enum %s that this gateway knows", f.Enum.Name)
			return nil
		}
		return stored
	case descriptor.TypeTime:
		t, ok := d.time(v.Message(), at)
		if !ok {
			return nil
		}
		return descriptor.FormatTime(t)
	}
	text := v.String()
	d.texts += len(text)
	return text
}
