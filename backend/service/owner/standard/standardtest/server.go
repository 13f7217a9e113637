// Package standardtest is a gRPC service in memory, for tests. Descriptors define its standard methods. It does not use
// the gateway's code: it finds methods and fields by their names.
package standardtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Config configures a service.
type Config struct {
	// Descriptors is a FileDescriptorSet.
	Descriptors []byte
	// Services are the full names of the services. Message is the full name of the resource's message.
	Services []string
	Message  string
	// Name, Tag and UID are paths in the resource. Tag and UID may be empty.
	Name, Tag, UID string
	// Collection is the part of names after the parent, such as books. It is empty if names have only one part.
	Collection string
	// MaxPage is the maximum size of a page. The default is 100.
	MaxPage int
	// Validate returns an error for a written resource that the service refuses. If Validate is nil, all are accepted.
	Validate func(resource protoreflect.Message) error
	// Before is called with the name of the method before each call. If it returns an error, the call does nothing and
	// returns this error.
	Before func(ctx context.Context, method string) error
	// After is called after each successful call. If it returns an error, the error replaces the answer.
	After func(method string) error
	// Admit changes resources that are written.
	Admit func(resource protoreflect.Message)
	// Wrap is called instead of each method, and may call the method as do. If Wrap is nil, methods are called
	// directly.
	Wrap func(s *Server, method string, in *dynamicpb.Message, do func() (*dynamicpb.Message, error)) (*dynamicpb.Message, error)
	// TagOf returns the tag of a stored resource. If TagOf is nil, each write sets a new tag.
	TagOf func(resource protoreflect.Message) string
	// Sends reports whether streams send a change, which may be a deletion. If Sends is nil, they send all changes.
	Sends func(deleted bool) bool
	// Header is the name of the field of an event that names a deleted resource. HeaderKind and HeaderName are the
	// paths of the kind and the name of the resource; they begin at that field. The defaults are header, kind and Name.
	Header, HeaderKind, HeaderName string
	// TagPresent makes the service refuse updates without a tag as conflicts, according to RFD 153. Otherwise such
	// updates are unconditional.
	TagPresent bool
	// SlowOperations makes operations complete at the second poll. Otherwise they are complete at once.
	SlowOperations bool
}

// Server is a service in memory. It is safe for concurrent use.
type Server struct {
	cfg   Config
	files *protoregistry.Files
	// resource is the message of the resource. listed is the message of the answer to a list.
	resource, listed protoreflect.MessageDescriptor

	mu         sync.Mutex // guards all below
	resources  map[string]*dynamicpb.Message
	operations map[string]*dynamicpb.Message
	count      int
	// watchers has a channel for each stream.
	watchers map[chan event]bool
}

type event struct {
	deleted  bool
	resource *dynamicpb.Message
}

// New returns a service without resources, and its handler.
func New(t testing.TB, cfg Config) (*Server, http.Handler) {
	t.Helper()
	if cfg.MaxPage == 0 {
		cfg.MaxPage = 100
	}
	cfg.Header = cmp.Or(cfg.Header, "header")
	cfg.HeaderKind = cmp.Or(cfg.HeaderKind, "kind")
	cfg.HeaderName = cmp.Or(cfg.HeaderName, cfg.Name)
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(cfg.Descriptors, &set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		cfg: cfg, files: files, resources: map[string]*dynamicpb.Message{}, operations: map[string]*dynamicpb.Message{},
		watchers: map[chan event]bool{},
	}
	found, err := files.FindDescriptorByName(protoreflect.FullName(cfg.Message))
	if err != nil {
		t.Fatal(err)
	}
	s.resource = found.(protoreflect.MessageDescriptor)
	mux := http.NewServeMux()
	for _, name := range cfg.Services {
		found, err := files.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			t.Fatal(err)
		}
		s.serve(mux, found.(protoreflect.ServiceDescriptor))
	}
	return s, mux
}

// serve adds the methods of a service to mux.
func (s *Server) serve(mux *http.ServeMux, of protoreflect.ServiceDescriptor) {
	for i := range of.Methods().Len() {
		m := of.Methods().Get(i)
		path := fmt.Sprintf("/%s/%s", of.FullName(), m.Name())
		if strings.HasPrefix(string(m.Name()), "List") {
			s.listed = m.Output()
		}
		options := []connect.HandlerOption{
			connect.WithSchema(m), connect.WithRequestInitializer(func(_ connect.Spec, message any) error {
				if d, ok := message.(*dynamicpb.Message); ok {
					*d = *dynamicpb.NewMessage(m.Input())
				}
				return nil
			}),
		}
		switch {
		case m.IsStreamingServer() && !m.IsStreamingClient():
			mux.Handle(path, connect.NewServerStreamHandler(path, func(
				ctx context.Context, _ *connect.Request[dynamicpb.Message], stream *connect.ServerStream[dynamicpb.Message],
			) error {
				return s.watch(ctx, m, stream)
			}, options...))
		case !m.IsStreamingClient():
			mux.Handle(path, connect.NewUnaryHandler(path, func(
				ctx context.Context, r *connect.Request[dynamicpb.Message],
			) (*connect.Response[dynamicpb.Message], error) {
				out, err := s.answer(ctx, m, r.Msg)
				if err != nil {
					return nil, err
				}
				return connect.NewResponse(out), nil
			}, options...))
		}
	}
}

func (s *Server) answer(ctx context.Context, m protoreflect.MethodDescriptor, in *dynamicpb.Message) (*dynamicpb.Message, error) {
	name := string(m.Name())
	if s.cfg.Before != nil {
		if err := s.cfg.Before(ctx, name); err != nil {
			return nil, err
		}
	}
	do := func() (*dynamicpb.Message, error) { return s.call(m, in) }
	if s.cfg.Wrap != nil {
		plain := do
		do = func() (*dynamicpb.Message, error) { return s.cfg.Wrap(s, name, in, plain) }
	}
	out, err := do()
	if err == nil && s.cfg.After != nil {
		err = s.cfg.After(name)
	}
	return out, err
}

func refuse(code connect.Code, format string, args ...any) error {
	return connect.NewError(code, fmt.Errorf(format, args...))
}

// fieldAt returns the field at a path, and the message that contains it.
func fieldAt(m protoreflect.Message, path string) (protoreflect.Message, protoreflect.FieldDescriptor) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		m = m.Mutable(m.Descriptor().Fields().ByName(protoreflect.Name(name))).Message()
	}
	return m, m.Descriptor().Fields().ByName(protoreflect.Name(names[len(names)-1]))
}

// textAt returns a string in a message; empty if there is no such field.
func textAt(m protoreflect.Message, path string) string {
	if path == "" {
		return ""
	}
	at, f := fieldAt(m, path)
	if f == nil {
		return ""
	}
	return at.Get(f).String()
}

func setText(m protoreflect.Message, path, text string) {
	if path == "" {
		return
	}
	at, f := fieldAt(m, path)
	at.Set(f, protoreflect.ValueOfString(text))
}

// resourceIn returns the resource in a request; nil if it has none.
func (s *Server) resourceIn(in protoreflect.Message) protoreflect.Message {
	if in.Descriptor() == s.resource {
		return in
	}
	for i := range in.Descriptor().Fields().Len() {
		f := in.Descriptor().Fields().Get(i)
		if f.Message() == s.resource && !f.IsList() {
			return in.Get(f).Message()
		}
	}
	return nil
}

// keyIn returns the name of the resource that a request gets or deletes.
func keyIn(in protoreflect.Message) string {
	if in.Descriptor().Fields().ByName("name") != nil {
		return textAt(in, "name")
	}
	for i := range in.Descriptor().Fields().Len() {
		f := in.Descriptor().Fields().Get(i)
		if f.Kind() == protoreflect.StringKind && f.Name() != "etag" {
			return in.Get(f).String()
		}
	}
	return ""
}

func (s *Server) call(m protoreflect.MethodDescriptor, in *dynamicpb.Message) (*dynamicpb.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := string(m.Name())
	switch {
	case name == "GetOperation":
		return s.poll(m, in)
	case strings.HasPrefix(name, "Get"):
		if found := s.resources[keyIn(in)]; found != nil {
			return found, nil
		}
		return nil, refuse(connect.CodeNotFound, "%s is not there", keyIn(in))
	case strings.HasPrefix(name, "List"):
		return s.list(m, in)
	case strings.HasPrefix(name, "Create"):
		return s.create(m, in)
	case strings.HasPrefix(name, "Update"):
		return s.update(m, in)
	case strings.HasPrefix(name, "Upsert"):
		next := proto.Clone(s.resourceIn(in).Interface()).(*dynamicpb.Message)
		return s.store(m, next, s.resources[textAt(next, s.cfg.Name)])
	case strings.HasPrefix(name, "Delete"):
		return s.remove(m, in)
	}
	return nil, refuse(connect.CodeUnimplemented, "%s is not served", name)
}

func (s *Server) list(m protoreflect.MethodDescriptor, in protoreflect.Message) (*dynamicpb.Message, error) {
	size := s.cfg.MaxPage
	if f := in.Descriptor().Fields().ByName("page_size"); f != nil {
		if n := int(in.Get(f).Int()); n > 0 {
			size = min(size, n)
		}
	}
	out := dynamicpb.NewMessage(m.Output())
	var list protoreflect.List
	for i := range m.Output().Fields().Len() {
		if f := m.Output().Fields().Get(i); f.IsList() && f.Message() == s.resource {
			list = out.Mutable(f).List()
		}
	}
	names := slices.Sorted(maps.Keys(s.resources))
	parent := textAt(in, "parent")
	last := ""
	for _, name := range names {
		if name <= textAt(in, "page_token") {
			continue
		}
		if parent != "" && !strings.HasSuffix(parent, "-") && !strings.HasPrefix(name, parent+"/") {
			continue
		}
		if list.Len() == size {
			setText(out, "next_page_token", last)
			break
		}
		list.Append(protoreflect.ValueOfMessage(s.resources[name]))
		last = name
	}
	return out, nil
}

func (s *Server) create(m protoreflect.MethodDescriptor, in protoreflect.Message) (*dynamicpb.Message, error) {
	resource := s.resourceIn(in)
	if resource == nil {
		return nil, refuse(connect.CodeInvalidArgument, "the resource is missing")
	}
	next := proto.Clone(resource.Interface()).(*dynamicpb.Message)
	if s.cfg.Collection != "" && in.Descriptor() != s.resource {
		id := ""
		for i := range in.Descriptor().Fields().Len() {
			if f := in.Descriptor().Fields().Get(i); strings.HasSuffix(string(f.Name()), "_id") && f.Name() != "request_id" {
				id = in.Get(f).String()
			}
		}
		setText(next, s.cfg.Name, textAt(in, "parent")+"/"+s.cfg.Collection+"/"+id)
	}
	name := textAt(next, s.cfg.Name)
	switch {
	case name == "" || strings.HasSuffix(name, "/"):
		return nil, refuse(connect.CodeInvalidArgument, "the name is missing")
	case s.resources[name] != nil:
		return nil, refuse(connect.CodeAlreadyExists, "%s is there", name)
	}
	s.count++
	if s.cfg.UID != "" {
		setText(next, s.cfg.UID, "uid-"+strconv.Itoa(s.count))
	}
	return s.store(m, next, nil)
}

func (s *Server) update(m protoreflect.MethodDescriptor, in protoreflect.Message) (*dynamicpb.Message, error) {
	resource := s.resourceIn(in)
	was := s.resources[textAt(resource, s.cfg.Name)]
	if was == nil {
		return nil, refuse(connect.CodeNotFound, "%s is not there", textAt(resource, s.cfg.Name))
	}
	given := textAt(resource, s.cfg.Tag)
	if s.cfg.Tag != "" && (given != "" || s.cfg.TagPresent) && given != textAt(was, s.cfg.Tag) {
		return nil, refuse(connect.CodeFailedPrecondition, "the revision does not match")
	}
	next := proto.Clone(resource.Interface()).(*dynamicpb.Message)
	if f := in.Descriptor().Fields().ByName("update_mask"); f != nil && in.Has(f) {
		mask := in.Get(f).Message()
		paths := mask.Get(mask.Descriptor().Fields().ByName("paths")).List()
		next = proto.Clone(was).(*dynamicpb.Message)
		for i := range paths.Len() {
			from, at := fieldAt(proto.Clone(resource.Interface()).ProtoReflect(), paths.Get(i).String())
			to, _ := fieldAt(next, paths.Get(i).String())
			if at == nil {
				return nil, refuse(connect.CodeInvalidArgument, "the mask has %q", paths.Get(i))
			}
			to.Clear(at)
			if from.Has(at) {
				to.Set(at, from.Get(at))
			}
		}
	}
	return s.store(m, next, was)
}

// store stores a resource in place of the previous one, which is nil for a new resource. The caller holds mu.
func (s *Server) store(m protoreflect.MethodDescriptor, next, was *dynamicpb.Message) (*dynamicpb.Message, error) {
	if s.cfg.Validate != nil {
		if err := s.cfg.Validate(next); err != nil {
			return nil, err
		}
	}
	if was != nil && s.cfg.UID != "" {
		setText(next, s.cfg.UID, textAt(was, s.cfg.UID))
	}
	if s.cfg.Admit != nil {
		s.cfg.Admit(next)
	}
	s.count++
	if s.cfg.Tag != "" {
		setText(next, s.cfg.Tag, "r"+strconv.Itoa(s.count))
	}
	if s.cfg.TagOf != nil {
		setText(next, s.cfg.Tag, s.cfg.TagOf(next))
	}
	s.resources[textAt(next, s.cfg.Name)] = next
	s.publish(event{resource: next})
	return s.made(m, next), nil
}

// made returns the answer of a method that has written a resource, or has deleted it in an operation.
func (s *Server) made(m protoreflect.MethodDescriptor, resource *dynamicpb.Message) *dynamicpb.Message {
	if m.Output() == s.resource {
		return resource
	}
	out := dynamicpb.NewMessage(m.Output())
	if m.Output().FullName() == "google.longrunning.Operation" {
		s.count++
		setText(out, "name", "operations/"+strconv.Itoa(s.count))
		if s.cfg.SlowOperations {
			s.operations[textAt(out, "name")] = out
			return out
		}
		out.Set(m.Output().Fields().ByName("done"), protoreflect.ValueOfBool(true))
		return out
	}
	for i := range m.Output().Fields().Len() {
		if f := m.Output().Fields().Get(i); f.Message() == s.resource && !f.IsList() {
			out.Set(f, protoreflect.ValueOfMessage(resource))
		}
	}
	return out
}

// poll returns an operation. At the first poll the operation is not done; later it is.
func (s *Server) poll(m protoreflect.MethodDescriptor, in protoreflect.Message) (*dynamicpb.Message, error) {
	known := s.operations[textAt(in, "name")]
	if known == nil {
		return nil, refuse(connect.CodeNotFound, "no such operation")
	}
	out := proto.Clone(known).(*dynamicpb.Message)
	known.Set(m.Output().Fields().ByName("done"), protoreflect.ValueOfBool(true))
	return out, nil
}

func (s *Server) remove(m protoreflect.MethodDescriptor, in protoreflect.Message) (*dynamicpb.Message, error) {
	name := keyIn(in)
	was := s.resources[name]
	if was == nil {
		return nil, refuse(connect.CodeNotFound, "%s is not there", name)
	}
	if tag := textAt(in, "etag"); tag != "" && tag != textAt(was, s.cfg.Tag) {
		return nil, refuse(connect.CodeAborted, "the etag does not match")
	}
	delete(s.resources, name)
	s.publish(event{deleted: true, resource: was})
	if m.Output().FullName() == "google.longrunning.Operation" {
		return s.made(m, was), nil
	}
	return dynamicpb.NewMessage(m.Output()), nil
}

// publish sends a change to all streams. The caller holds mu.
func (s *Server) publish(e event) {
	if s.cfg.Sends != nil && !s.cfg.Sends(e.deleted) {
		return
	}
	for to := range s.watchers {
		select {
		case to <- e:
		default: // a stream that is too slow is ended
			delete(s.watchers, to)
			close(to)
		}
	}
}

// watch sends events to a stream. The first event reports that the stream has started.
func (s *Server) watch(ctx context.Context, m protoreflect.MethodDescriptor, to *connect.ServerStream[dynamicpb.Message]) error {
	if s.cfg.Before != nil {
		if err := s.cfg.Before(ctx, string(m.Name())); err != nil {
			return err
		}
	}
	changes := make(chan event, 1000)
	s.mu.Lock()
	s.watchers[changes] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, changes)
	}()
	if err := to.Send(dynamicpb.NewMessage(m.Output())); err != nil {
		return err
	}
	for {
		select {
		case e, open := <-changes:
			if !open {
				return errors.New("the stream is too slow")
			}
			if err := to.Send(s.event(m, e)); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// event returns the message of an event. It has the resource or, after a deletion, the header.
func (s *Server) event(m protoreflect.MethodDescriptor, e event) *dynamicpb.Message {
	out := dynamicpb.NewMessage(m.Output())
	for i := range m.Output().Fields().Len() {
		f := m.Output().Fields().Get(i)
		switch {
		case f.Message() == s.resource && !e.deleted:
			out.Set(f, protoreflect.ValueOfMessage(e.resource))
		case string(f.Name()) == s.cfg.Header && e.deleted:
			header := out.Mutable(f).Message()
			setText(header, s.cfg.HeaderKind, textAt(e.resource, "kind"))
			setText(header, s.cfg.HeaderName, textAt(e.resource, s.cfg.Name))
		}
	}
	return out
}

// EndStreams ends all streams of events. Clients can open new ones.
func (s *Server) EndStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for to := range s.watchers {
		delete(s.watchers, to)
		close(to)
	}
}

// Put creates or changes a resource without a call of the service. It calls change, if it is not nil, with the
// resource.
func (s *Server) Put(name string, change func(resource protoreflect.Message)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := dynamicpb.NewMessage(s.resource)
	was := s.resources[name]
	if was != nil {
		next = proto.Clone(was).(*dynamicpb.Message)
	}
	setText(next, s.cfg.Name, name)
	if change != nil {
		change(next)
	}
	s.count++
	if s.cfg.Tag != "" {
		setText(next, s.cfg.Tag, "r"+strconv.Itoa(s.count))
	}
	s.resources[name] = next
	s.publish(event{resource: next})
}

// Remove deletes a resource without a call of the service.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.resources[name]; was != nil {
		delete(s.resources, name)
		s.publish(event{deleted: true, resource: was})
	}
}

// Show returns a copy of a resource; nil if there is none.
func (s *Server) Show(name string) protoreflect.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.resources[name]; was != nil {
		return proto.Clone(was).ProtoReflect()
	}
	return nil
}

// Slice returns a page of at most size resources. It begins with the resource whose index is at. Its next token is the
// number of resources before the next page. A good service has no such tokens, because they are wrong after a deletion.
func (s *Server) Slice(at, size int) *dynamicpb.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.Sorted(maps.Keys(s.resources))
	out := dynamicpb.NewMessage(s.listed)
	for i := range s.listed.Fields().Len() {
		f := s.listed.Fields().Get(i)
		if !f.IsList() {
			continue
		}
		for _, name := range names[min(at, len(names)):min(at+size, len(names))] {
			out.Mutable(f).List().Append(protoreflect.ValueOfMessage(s.resources[name]))
		}
	}
	if at+size < len(names) {
		setText(out, "next_page_token", strconv.Itoa(at+size))
	}
	return out
}

// Len returns the number of resources.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.resources)
}

// SetText sets a string in a resource. path is a path of field names, joined by dots.
func SetText(m protoreflect.Message, path, text string) { setText(m, path, text) }

// Field returns the field at a path and the message that contains the field. It creates missing messages on the path.
func Field(m protoreflect.Message, path string) (protoreflect.Message, protoreflect.FieldDescriptor) {
	return fieldAt(m, path)
}
