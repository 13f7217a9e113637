package standard

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/service/owner"
)

// interpretError interprets the error of a call. If the service has decided on the request, it returns the decision as
// an answer. Otherwise it returns the error.
func (p *plan) interpretError(m *method, err error) (owner.Answer, error) {
	if !connect.IsWireError(err) {
		return owner.Answer{}, err
	}
	message := messageOf(err)
	switch connect.CodeOf(err) {
	case connect.CodeAlreadyExists:
		return owner.Answer{Outcome: owner.Exists, Message: message}, nil
	case connect.CodeNotFound:
		return owner.Answer{Outcome: owner.Absent, Message: message}, nil
	case connect.CodeAborted, connect.CodeFailedPrecondition:
		return owner.Answer{Outcome: owner.Conflict, Message: message}, nil
	case connect.CodeInvalidArgument, connect.CodeOutOfRange:
		return owner.Answer{Outcome: owner.Invalid, Message: message, Violations: p.violations(m, err, message)}, nil
	case connect.CodePermissionDenied, connect.CodeUnauthenticated:
		return owner.Answer{Outcome: owner.Forbidden, Message: message}, nil
	case connect.CodeResourceExhausted:
		return owner.Answer{}, fmt.Errorf("%w: %w", owner.ErrNotSent, err)
	}
	return owner.Answer{}, err
}

// messageOf returns the message that the service has sent with an error.
func messageOf(err error) string {
	var said *connect.Error
	if errors.As(err, &said) {
		return shortText(said.Message())
	}
	return shortText(err.Error())
}

// maxDetail is the maximum size of an error detail in bytes. Larger details are ignored.
const maxDetail = 64 << 10

// The types of error details that name fields.
const (
	badRequestName = "google.rpc.BadRequest"
	bufViolations  = "buf.validate.Violations"
)

// violations returns a violation for each field that an error names. If the error names no field, it returns one for
// the whole spec.
func (p *plan) violations(m *method, err error, message string) (out []owner.Violation) {
	var said *connect.Error
	if errors.As(err, &said) {
		for _, detail := range said.Details() {
			if len(detail.Bytes()) > maxDetail {
				continue
			}
			switch detail.Type() {
			case badRequestName:
				out = append(out, p.badRequest(m, detail.Bytes())...)
			case bufViolations:
				out = append(out, p.bufViolations(m, detail.Bytes())...)
			}
		}
	}
	if len(out) == 0 {
		out = []owner.Violation{{Path: "spec", Rule: "service", Message: message}}
	}
	return out[:min(len(out), maxViolations)]
}

// badRequest decodes a google.rpc.BadRequest.
func (p *plan) badRequest(m *method, raw []byte) (out []owner.Violation) {
	eachField(raw, func(number protowire.Number, violation []byte) {
		if number != 1 || len(out) == maxViolations {
			return
		}
		var field, description, reason string
		eachField(violation, func(number protowire.Number, value []byte) {
			switch number {
			case 1:
				field = string(value)
			case 2:
				description = string(value)
			case 3:
				reason = string(value)
			}
		})
		out = append(out, p.violation(m, field, reason, description))
	})
	return out
}

// bufViolations decodes a buf.validate.Violations.
func (p *plan) bufViolations(m *method, raw []byte) (out []owner.Violation) {
	eachField(raw, func(number protowire.Number, violation []byte) {
		if number != 1 || len(out) == maxViolations {
			return
		}
		var field, rule, description string
		eachField(violation, func(number protowire.Number, value []byte) {
			switch number {
			case 2:
				rule = string(value)
			case 3:
				description = string(value)
			case 5:
				field = bufPath(value)
			}
		})
		out = append(out, p.violation(m, field, rule, description))
	})
	return out
}

// bufPath decodes a buf.validate.FieldPath. Indexes and keys are left out.
func bufPath(raw []byte) string {
	var names []string
	eachField(raw, func(number protowire.Number, element []byte) {
		if number != 1 {
			return
		}
		eachField(element, func(number protowire.Number, value []byte) {
			if number == 2 {
				names = append(names, string(value))
			}
		})
	})
	return strings.Join(names, ".")
}

// violation returns a violation for a field. field is its path in the request or in the resource.
func (p *plan) violation(m *method, field, rule, description string) owner.Violation {
	if rule == "" {
		rule = "service"
	}
	out := owner.Violation{Path: "spec", Rule: shortText(rule), Message: shortText(description)}
	path, ok := p.pathOf(m, field)
	switch {
	case ok:
		out.Path = path
	case field != "":
		out.Message = shortText(field + ": " + description)
	}
	if out.Message == "" {
		out.Message = "the service does not accept it"
	}
	return out
}

// maxPath is the maximum size of a path in an error detail in bytes. Longer paths are only in the message.
const maxPath = 1000

// pathStep matches a step of a path: a name, with or without indexes and keys.
var pathStep = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)((?:\[[^\]]*\])*)$`)

// pathOf translates the path of a field in a request to the path that callers use.
func (p *plan) pathOf(m *method, field string) (string, bool) {
	path := strings.Split(field, ".")
	if len(path) > maxDepth*2 || len(field) > maxPath {
		return "", false
	}
	if m != nil && len(m.resourceAt) == 1 && path[0] == string(m.resourceAt[0].Name()) && len(path) > 1 {
		path = path[1:]
	}
	if meta := p.metadataPath(strings.Join(path, ".")); meta != "" {
		return meta, true
	}
	s := p.spec
	if len(p.specAt) > 0 {
		at := strings.Split(p.specAt.String(), ".")
		if len(path) < len(at) || strings.Join(path[:len(at)], ".") != strings.Join(at, ".") {
			return "", false
		}
		path = path[len(at):]
	}
	out := "spec"
	for _, name := range path {
		parts := pathStep.FindStringSubmatch(name)
		if parts == nil || s == nil {
			return "", false
		}
		f := s.named(parts[1])
		if f == nil {
			return "", false
		}
		out += "." + f.name + shortText(parts[2])
		s = f.shape
	}
	return out, true
}

// named returns the field that has this name in the .proto file or in JSON; nil if there is none.
func (s *shape) named(name string) *field {
	for _, f := range s.fields {
		if f.Name() == protoreflect.Name(name) || f.name == name {
			return f
		}
	}
	return nil
}

// metadataPath translates a path in the resource to a path in the gateway's metadata, such as metadata.labels; "" if no
// metadata is stored there.
func (p *plan) metadataPath(path string) string {
	for _, one := range []struct {
		at   fieldAt
		path string
	}{
		{p.nameAt, "metadata.name"}, {p.namespaceAt, "metadata.namespace"}, {p.labelsAt, "metadata.labels"},
		{p.annotationsAt, "metadata.annotations"}, {p.descriptionAt, "metadata.description"},
	} {
		if len(one.at) > 0 && path == one.at.String() {
			return one.path
		}
	}
	return ""
}
