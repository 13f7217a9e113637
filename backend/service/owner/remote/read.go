package remote

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	pb "github.com/sluicegw/sluice/schema/service/v1/resourcev1"
)

// This file checks answers and converts them to the types of package owner.

// The maximum lengths of texts in answers, in bytes. Longer messages are cut.
const (
	maxTag     = 1024
	maxUID     = 256
	maxWriteID = 256
	maxToken   = 4096
	maxName    = 253
	maxText    = 4096
)

// maxViolations is the maximum number of violations, and also of warnings, that are read from an answer.
const maxViolations = 1000

// kindName matches the names of kinds, which are GraphQL names that are not reserved.
var kindName = regexp.MustCompile(`^[A-Za-z][_0-9A-Za-z]*$`)

func readDescription(in *pb.DescribeResponse) (owner.Description, error) {
	if err := atMost("service", in.Service, maxName); err != nil {
		return owner.Description{}, err
	}
	if in.Service != oneLine(in.Service, maxName) {
		return owner.Description{}, fmt.Errorf("service: %q has control characters", in.Service)
	}
	out := owner.Description{Service: in.Service, SDL: in.Sdl}
	seen := map[string]bool{}
	for i, k := range in.Kinds {
		switch name := k.GetKind(); {
		case len(name) > maxName || !kindName.MatchString(name):
			return owner.Description{}, fmt.Errorf("kinds[%d]: a kind cannot be called %q", i, cut(name, maxName))
		case seen[name]:
			return owner.Description{}, fmt.Errorf("kinds[%d]: %s is there twice", i, name)
		default:
			seen[name] = true
		}
		out.Kinds = append(out.Kinds, owner.Kind{
			Name: k.Kind, Changes: k.Changes, Writes: k.Writes, Conditional: k.Conditional, DryRun: k.DryRun,
		})
	}
	return out, nil
}

// readPage converts an answer to List. It returns a resource that violates the contract as unreadable.
func readPage(request *pb.ListRequest, in *pb.ListResponse) (owner.Page, error) {
	if err := atMost("nextPageToken", in.NextPageToken, maxToken); err != nil {
		return owner.Page{}, err
	}
	if n := len(in.Resources) + len(in.Unreadable); n > int(request.PageSize) {
		return owner.Page{}, fmt.Errorf("the page has %d resources; at most %d were asked for", n, request.PageSize)
	}
	if in.NextPageToken != "" && in.NextPageToken == request.PageToken {
		return owner.Page{}, fmt.Errorf("nextPageToken: it is the token that was asked for, so the list would not end")
	}
	out := owner.Page{Next: in.NextPageToken}
	for _, r := range in.Resources {
		key, err := readKey(r.GetKey())
		if err == nil && key.Kind != request.Kind {
			err = fmt.Errorf("key.kind: it is %q, and %s was asked for", cut(key.Kind, maxName), request.Kind)
		}
		if err != nil { // it is not known which resource this is
			out.Unreadable = append(out.Unreadable, owner.Unreadable{
				Key: backend.Key{Kind: request.Kind}, Message: err.Error(),
			})
			continue
		}
		resource, err := readResource(key, r)
		if err != nil {
			out.Unreadable = append(out.Unreadable, owner.Unreadable{Key: key, Message: err.Error()})
			continue
		}
		out.Resources = append(out.Resources, resource)
	}
	for _, u := range in.Unreadable {
		key, err := readKey(u.GetKey())
		if err != nil || key.Kind != request.Kind {
			key = backend.Key{Kind: request.Kind}
		}
		out.Unreadable = append(out.Unreadable, owner.Unreadable{Key: key, Message: oneLine(u.GetMessage(), maxText)})
	}
	return out, nil
}

func readGot(keys []backend.Key, in *pb.GetResponse) ([]owner.Got, error) {
	if len(in.Got) != len(keys) {
		return nil, fmt.Errorf("there are %d answers to %d keys", len(in.Got), len(keys))
	}
	out := make([]owner.Got, len(keys))
	for i, got := range in.Got {
		switch {
		case got.GetUnreadable() != "":
			out[i].Unreadable = oneLine(got.Unreadable, maxText)
			continue
		case got.GetResource() == nil:
			continue
		}
		if err := sameKey(keys[i], got.Resource); err != nil {
			return nil, fmt.Errorf("got[%d]: %w", i, err)
		}
		resource, err := readResource(keys[i], got.Resource)
		if err != nil {
			out[i].Unreadable = err.Error()
			continue
		}
		out[i].Resource = &resource
	}
	return out, nil
}

// readChanges converts an answer to Changes. It leaves out keys that no resource can have.
func readChanges(in *pb.ChangesResponse) (owner.Changes, error) {
	if in.Position == "" {
		return owner.Changes{}, errors.New("position: it is missing")
	}
	if err := atMost("position", in.Position, maxToken); err != nil {
		return owner.Changes{}, err
	}
	out := owner.Changes{Position: in.Position, Expired: in.Expired}
	for _, k := range in.Keys {
		if key, err := readKey(k); err == nil {
			out.Keys = append(out.Keys, key)
		}
	}
	return out, nil
}

func readAnswer(requested backend.Key, in *pb.WriteResponse) (owner.Answer, error) {
	outcome := owner.Outcome(in.Outcome)
	if outcome < owner.Done || outcome > owner.Refused {
		return owner.Answer{}, errors.New("outcome: it is missing, or unknown")
	}
	out := owner.Answer{
		Outcome:    outcome,
		Message:    cut(in.Message, maxText),
		Violations: readViolations(in.Violations),
		Warnings:   readViolations(in.Warnings),
	}
	if in.Resource == nil {
		return out, nil
	}
	if err := sameKey(requested, in.Resource); err != nil {
		return owner.Answer{}, fmt.Errorf("resource: %w", err)
	}
	resource, err := readResource(requested, in.Resource)
	if err != nil {
		return owner.Answer{}, fmt.Errorf("resource: %w", err)
	}
	out.Resource = &resource
	return out, nil
}

func readViolations(in []*pb.Violation) []owner.Violation {
	if len(in) > maxViolations {
		in = in[:maxViolations]
	}
	var out []owner.Violation
	for _, v := range in {
		out = append(out, owner.Violation{
			Path: cut(v.GetPath(), maxText), Rule: cut(v.GetRule(), maxName), Message: cut(v.GetMessage(), maxText),
		})
	}
	return out
}

// readKey converts a key. It returns an error for a key that no resource can have.
func readKey(in *pb.Key) (backend.Key, error) {
	key := backend.Key{Kind: in.GetKind(), Namespace: in.GetNamespace(), Name: in.GetName()}
	n := len(key.Kind) + len(key.Namespace) + len(key.Name)
	switch {
	case key.Kind == "":
		return backend.Key{}, errors.New("key.kind: it is missing")
	case key.Internal():
		return backend.Key{}, fmt.Errorf("key.kind: a kind cannot be called %q", cut(key.Kind, maxName))
	case key.Name == "":
		return backend.Key{}, errors.New("key.name: it is missing")
	case n > backend.MaxKeyBytes:
		return backend.Key{}, fmt.Errorf("key: it has %d bytes; at most %d are accepted", n, backend.MaxKeyBytes)
	}
	return key, nil
}

// sameKey returns an error if a resource has another key than the requested one.
func sameKey(requested backend.Key, in *pb.Resource) error {
	key := backend.Key{Kind: in.GetKey().GetKind(), Namespace: in.GetKey().GetNamespace(), Name: in.GetKey().GetName()}
	if key != requested {
		return fmt.Errorf("key: it is %s, and %s was asked for", oneLine(key.String(), maxName), requested)
	}
	return nil
}

// readResource converts a resource. The caller has checked the key.
func readResource(key backend.Key, in *pb.Resource) (owner.Resource, error) {
	for _, err := range []error{
		atMost("tag", in.Tag, maxTag), atMost("uid", in.Uid, maxUID), atMost("writeId", in.WriteId, maxWriteID),
	} {
		if err != nil {
			return owner.Resource{}, err
		}
	}
	if in.Generation < 0 {
		return owner.Resource{}, fmt.Errorf("generation: it is %d", in.Generation)
	}
	created, err := readTime(in.CreatedAt)
	if err != nil {
		return owner.Resource{}, fmt.Errorf("createdAt: %w", err)
	}
	deletion, err := readTime(in.DeletionRequestedAt)
	if err != nil {
		return owner.Resource{}, fmt.Errorf("deletionRequestedAt: %w", err)
	}
	spec, err := printObject(in.Spec)
	if err != nil {
		return owner.Resource{}, fmt.Errorf("spec: %w", err)
	}
	if spec == nil {
		spec = []byte("{}")
	}
	status, err := printObject(in.Status)
	if err != nil {
		return owner.Resource{}, fmt.Errorf("status: %w", err)
	}
	return owner.Resource{
		Key:                 key,
		Tag:                 in.Tag,
		UID:                 in.Uid,
		WriteID:             in.WriteId,
		Labels:              in.Labels,
		Annotations:         in.Annotations,
		Description:         in.Description,
		CreatedAt:           created,
		DeletionRequestedAt: deletion,
		Spec:                spec,
		Status:              status,
		Generation:          in.Generation,
	}, nil
}

// readTime converts a time; the zero time for nil.
func readTime(in *timestamppb.Timestamp) (time.Time, error) {
	if in == nil {
		return time.Time{}, nil
	}
	if err := in.CheckValid(); err != nil {
		return time.Time{}, err
	}
	return in.AsTime(), nil
}

func atMost(name, text string, n int) error {
	if len(text) > n {
		return fmt.Errorf("%s: it has %d bytes; at most %d are accepted", name, len(text), n)
	}
	return nil
}
