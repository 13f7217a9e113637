package standard_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

func TestGet_AKeyThatIsRefusedIsUnreadableAndOthersAreNot(t *testing.T) {
	var code atomic.Uint32
	cfg := fooConfig(t)
	cfg.Wrap = func(
		_ *standardtest.Server, method string, in *dynamicpb.Message, do doing,
	) (*dynamicpb.Message, error) {
		if method == "GetFoo" && textIn(in, "foo_id") == "bad" {
			return nil, refused(connect.Code(code.Load()), "not this one")
		}
		return do()
	}
	w := newWorld(t, cfg, "", nil)
	w.server.Put("good", nil)
	w.server.Put("bad", nil)
	bad := backend.Key{Kind: "Foo", Name: "bad"}
	keys := []backend.Key{bad, {Kind: "Foo", Name: "good"}}
	for _, decision := range []connect.Code{
		connect.CodeInvalidArgument, connect.CodePermissionDenied, connect.CodeInternal, connect.CodeUnknown,
		connect.CodeDataLoss, connect.CodeFailedPrecondition, connect.CodeOutOfRange,
	} {
		code.Store(uint32(decision))
		got, err := w.client.Get(t.Context(), keys)
		if err != nil || !strings.Contains(got[0].Unreadable, "not this one") || got[1].Resource == nil {
			t.Errorf("%v: %+v %v", decision, got, err)
		}
	}
	for _, failure := range []connect.Code{connect.CodeUnavailable, connect.CodeUnauthenticated} {
		code.Store(uint32(failure))
		if _, err := w.client.Get(t.Context(), keys); err == nil {
			t.Errorf("%v is no error", failure)
		}
	}
	code.Store(uint32(connect.CodePermissionDenied))
	w.write(t, owner.Write{Resource: owner.Resource{Key: bad, Spec: []byte(`{}`)}, IfTag: "r"}, owner.Forbidden)
	a, err := w.client.Delete(t.Context(), owner.Delete{Key: bad, IfTag: "r"})
	if err != nil || a.Outcome != owner.Forbidden {
		t.Errorf("%+v %v", a, err)
	}
}

func TestList_PagesThatAreNotRecognisedAreRefused(t *testing.T) {
	for _, one := range []struct {
		request, response, mapping string
		refused                    bool
	}{
		{"", "", "{}", false},
		{"string filter = 1;", "repeated string unreachable = 2;", "{}", false},
		{"string page_token = 1;", "string next_page_token = 2;", "{}", false},
		{"string page_token = 1;", "", "{}", true},
		{"", "string next_page_token = 2;", "{}", true},
		{"int32 limit = 1;", "", "{}", true},
		{"string cursor = 1;", "string next_cursor = 2;", "{}", true},
		{"string cursor = 1;", "string next_cursor = 2;", "{list: {token: cursor, next: next_cursor}}", false},
		{"string cursor = 1;", "string next_cursor = 2;", "{list: {token: cursor}}", true},
		{"int32 limit = 1;", "int32 total = 2;", `{list: {token: "-", next: "-"}}`, false},
	} {
		cfg := thingConfig(t, map[string]string{"ListThingsRequest": one.request, "ListThingsResponse": one.response})
		d, err := standard.ReadDescriptors(cfg.Descriptors)
		if err != nil {
			t.Fatal(err)
		}
		m, err := standard.ParseMapping([]byte("kinds: {Thing: " + one.mapping + "}"))
		if err != nil {
			t.Fatal(err)
		}
		client, err := standard.New(standard.Config{Descriptors: d, Mapping: m})
		if is := err != nil && strings.Contains(err.Error(), "list.token"); is != one.refused {
			t.Errorf("%+v: %v", one, err)
		}
		if client != nil {
			client.Close()
		}
		pulled, err := d.Catalogue("things", []string{"Thing"}, m, standard.Limits{Length: 1, Items: 1})
		if err != nil || (len(pulled.Refused) > 0) != one.refused {
			t.Errorf("%+v: %+v %v", one, pulled, err)
		}
	}
}
