package remote

import (
	"net/http"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	pb "github.com/sluicegw/sluice/schema/service/v1/resourcev1"
)

// Escape and Unescape are those of headers.
func Escape(text string) string   { return escape(text) }
func Unescape(text string) string { return unescape(text) }

// ReadAll reads an answer in JSON as the answer to each call, and returns what could be read.
func ReadAll(raw []byte, kind string, keys []backend.Key) (out []any) {
	loose := protojson.UnmarshalOptions{DiscardUnknown: true}
	described := &pb.DescribeResponse{}
	if loose.Unmarshal(raw, described) == nil {
		if d, err := readDescription(described); err == nil {
			out = append(out, d)
		}
	}
	listed := &pb.ListResponse{}
	if loose.Unmarshal(raw, listed) == nil {
		if page, err := readPage(&pb.ListRequest{Kind: kind, PageSize: 100}, listed); err == nil {
			out = append(out, page)
		}
	}
	got := &pb.GetResponse{}
	if loose.Unmarshal(raw, got) == nil {
		if g, err := readGot(keys, got); err == nil {
			out = append(out, g)
		}
	}
	changed := &pb.ChangesResponse{}
	if loose.Unmarshal(raw, changed) == nil {
		if c, err := readChanges(changed); err == nil {
			out = append(out, c)
		}
	}
	written := &pb.WriteResponse{}
	if loose.Unmarshal(raw, written) == nil {
		if a, err := readAnswer(keys[0], written); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// RoundTrip writes a resource as a message and reads it again.
func RoundTrip(r owner.Resource) (owner.Resource, error) {
	message, err := resourceOf(&r)
	if err != nil {
		return owner.Resource{}, err
	}
	return readResource(r.Key, message)
}

// Limited returns a sender of requests over any version of HTTP.
func Limited(transport http.RoundTripper) http.RoundTripper { return limited{transport} }
