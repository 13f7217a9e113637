package remote

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	pb "github.com/sluicegw/sluice/schema/service/v1/resourcev1"
)

// This file creates messages. The files read.go (answers) and handler.go (requests) convert them back.

func keyOf(k backend.Key) *pb.Key { return &pb.Key{Kind: k.Kind, Namespace: k.Namespace, Name: k.Name} }

func keysOf(keys []backend.Key) []*pb.Key {
	out := make([]*pb.Key, len(keys))
	for i, k := range keys {
		out[i] = keyOf(k)
	}
	return out
}

// writeOf returns the request for a write. It returns an inexactError for a number that cannot be expressed, and
// another error if the spec is not a JSON object.
func writeOf(w owner.Write) (*pb.WriteRequest, error) {
	r := w.Resource
	spec, err := parseObject(r.Spec, "spec")
	if err != nil {
		return nil, err
	}
	return &pb.WriteRequest{
		Resource: &pb.Resource{
			Key: keyOf(r.Key), Labels: r.Labels, Annotations: r.Annotations, Description: r.Description, Spec: spec,
		},
		IfAbsent: w.IfAbsent,
		IfTag:    w.IfTag,
		IfUid:    w.IfUID,
		DryRun:   w.DryRun,
		WriteId:  r.WriteID,
	}, nil
}

// resourceOf returns the message for a resource; nil for nil.
func resourceOf(r *owner.Resource) (*pb.Resource, error) {
	if r == nil {
		return nil, nil
	}
	spec, err := parseObject(r.Spec, "spec")
	if err != nil {
		return nil, err
	}
	var status *structpb.Struct
	if len(r.Status) > 0 {
		if status, err = parseObject(r.Status, "status"); err != nil {
			return nil, err
		}
	}
	return &pb.Resource{
		Key:                 keyOf(r.Key),
		Tag:                 r.Tag,
		Uid:                 r.UID,
		Labels:              r.Labels,
		Annotations:         r.Annotations,
		Description:         r.Description,
		CreatedAt:           timestampOf(r.CreatedAt),
		DeletionRequestedAt: timestampOf(r.DeletionRequestedAt),
		Spec:                spec,
		Status:              status,
		Generation:          r.Generation,
		WriteId:             r.WriteID,
	}, nil
}

// timestampOf converts a time; nil for the zero time.
func timestampOf(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func answerOf(a owner.Answer) (*pb.WriteResponse, error) {
	resource, err := resourceOf(a.Resource)
	if err != nil {
		return nil, err
	}
	return &pb.WriteResponse{
		Outcome:    pb.Outcome(a.Outcome),
		Resource:   resource,
		Message:    a.Message,
		Violations: violationsOf(a.Violations),
		Warnings:   violationsOf(a.Warnings),
	}, nil
}

func violationsOf(all []owner.Violation) []*pb.Violation {
	out := make([]*pb.Violation, len(all))
	for i, v := range all {
		out[i] = &pb.Violation{Path: v.Path, Rule: v.Rule, Message: v.Message}
	}
	return out
}
