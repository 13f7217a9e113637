package standard_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend/service/owner/kit"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// textIn returns a text of a message.
func textIn(m protoreflect.Message, path string) string {
	at, f := standardtest.Field(proto.Clone(m.Interface()).ProtoReflect(), path)
	return at.Get(f).String()
}

// fooIn returns the Foo in a request.
func fooIn(in *dynamicpb.Message) protoreflect.Message {
	return in.Get(in.Descriptor().Fields().ByName("foo")).Message()
}

// putFoo stores the Foo of a request, whatever is there.
func putFoo(s *standardtest.Server, in *dynamicpb.Message) *dynamicpb.Message {
	foo := fooIn(in)
	name := textIn(foo, "metadata.name")
	s.Put(name, func(to protoreflect.Message) {
		proto.Reset(to.Interface())
		proto.Merge(to.Interface(), foo.Interface())
	})
	return s.Show(name).Interface().(*dynamicpb.Message)
}

type doing = func() (*dynamicpb.Message, error)

func TestClient_EachDefectOfAServiceIsFoundByItsPromise(t *testing.T) {
	for _, defect := range []struct {
		name  string
		plant func(cfg *standardtest.Config)
		want  string
	}{
		{"Get reads a copy that is late", func(cfg *standardtest.Config) {
			var mu sync.Mutex
			late := map[string]*dynamicpb.Message{}
			cfg.Wrap = func(_ *standardtest.Server, method string, in *dynamicpb.Message, do doing) (*dynamicpb.Message, error) {
				out, err := do()
				if method != "GetFoo" || err != nil {
					return out, err
				}
				mu.Lock()
				defer mu.Unlock()
				name := textIn(in, "foo_id")
				if was := late[name]; was != nil {
					out = was
				}
				late[name], err = do()
				return out, err
			}
		}, "reads-own-writes"},
		{"the revision is that of the spec", func(cfg *standardtest.Config) {
			cfg.TagOf = func(foo protoreflect.Message) string {
				raw, _ := proto.MarshalOptions{Deterministic: true}.Marshal(foo.Get(foo.Descriptor().Fields().ByName("spec")).Message().Interface())
				return strconv.Quote(string(raw))
			}
		}, "tag-changes"},
		{"a page token is a number of resources", func(cfg *standardtest.Config) {
			cfg.Wrap = func(s *standardtest.Server, method string, in *dynamicpb.Message, do doing) (*dynamicpb.Message, error) {
				if method != "ListFoos" {
					return do()
				}
				at, _ := strconv.Atoi(textIn(in, "page_token"))
				size := 7
				if n := int(in.Get(in.Descriptor().Fields().ByName("page_size")).Int()); n > 0 {
					size = min(size, n)
				}
				return s.Slice(at, size), nil
			}
		}, "list-under-writes"},
		{"a create looks first and writes then", func(cfg *standardtest.Config) {
			cfg.Wrap = func(s *standardtest.Server, method string, in *dynamicpb.Message, do doing) (*dynamicpb.Message, error) {
				if method != "CreateFoo" || s.Show(textIn(fooIn(in), "metadata.name")) != nil {
					return do()
				}
				time.Sleep(20 * time.Millisecond)
				return putFoo(s, in), nil
			}
		}, "if-absent-once"},
		{"an update looks first and writes then", func(cfg *standardtest.Config) {
			cfg.Wrap = func(s *standardtest.Server, method string, in *dynamicpb.Message, do doing) (*dynamicpb.Message, error) {
				foo := protoreflect.Message(nil)
				if method == "UpdateFoo" {
					foo = s.Show(textIn(fooIn(in), "metadata.name"))
				}
				if foo == nil || textIn(foo, "metadata.revision") != textIn(fooIn(in), "metadata.revision") {
					return do()
				}
				time.Sleep(20 * time.Millisecond)
				return putFoo(s, in), nil
			}
		}, "if-tag-once"},
		{"labels are not kept", func(cfg *standardtest.Config) {
			cfg.Admit = func(foo protoreflect.Message) {
				meta, labels := standardtest.Field(foo, "metadata.labels")
				meta.Clear(labels)
			}
		}, "keeps-metadata"},
		{"a delete does nothing", func(cfg *standardtest.Config) {
			cfg.Wrap = func(_ *standardtest.Server, method string, in *dynamicpb.Message, do doing) (*dynamicpb.Message, error) {
				if method == "DeleteFoo" && !strings.HasSuffix(textIn(in, "foo_id"), "7") {
					return do()
				}
				if method == "DeleteFoo" {
					return dynamicpb.NewMessage(in.Descriptor()), nil
				}
				return do()
			}
		}, "reads-own-writes"},
		{"what is refused is an internal error", func(cfg *standardtest.Config) {
			cfg.Validate = func(protoreflect.Message) error { return refused(connect.CodeInternal, "no") }
		}, "accepts"},
		{"deletes are not told", func(cfg *standardtest.Config) {
			cfg.Sends = func(deleted bool) bool { return !deleted }
		}, "changes-reported"},
		{"some changes are not told", func(cfg *standardtest.Config) {
			var mu sync.Mutex
			n := 0
			cfg.Sends = func(bool) bool {
				mu.Lock()
				defer mu.Unlock()
				n++
				return n%5 != 0
			}
		}, "changes-parallel"},
	} {
		t.Run(defect.name, func(t *testing.T) {
			t.Parallel()
			cfg := fooConfig(t)
			cfg.Services = append(cfg.Services, "teleport.foo.v1.FooWatchService")
			defect.plant(&cfg)
			var mapping *standard.Mapping
			if cfg.Sends != nil {
				mapping = watching(t)
			}
			w := newWorld(t, cfg, "", mapping)
			found := map[string]string{}
			results, err := kit.Run(t.Context(), kit.Config{
				Service: w.client, Descriptors: w.described(t), Seed: 1, Patience: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if r.Status == kit.Failed {
					found[r.Promise] = r.Detail
				}
			}
			if found[defect.want] == "" {
				t.Errorf("%s was not found: %v", defect.want, found)
			}
		})
	}
}
