package standard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

// The field numbers of the messages in grpc.reflection.v1, which are the same in v1alpha, and the limits of reflection.
const (
	requestFileByName    = 3
	requestFileOfSymbol  = 4
	requestListServices  = 7
	answerFiles          = 4
	answerServices       = 6
	answerError          = 7
	firstField           = 1
	secondField          = 2
	maxReflectedServices = 1000
	// reflectionTime bounds all calls of Reflect together.
	reflectionTime         = time.Minute
	reflectionMethod       = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	reflectionMethodBefore = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
)

// Reflect reads the descriptors of a service by gRPC reflection. It returns a FileDescriptorSet.
func Reflect(ctx context.Context, c *remote.Client) ([]byte, error) {
	return reflectWithin(ctx, c, reflectionTime)
}

// reflectWithin is Reflect with a time limit.
func reflectWithin(ctx context.Context, c *remote.Client, limit time.Duration) ([]byte, error) {
	late := fmt.Errorf("the reflection of the service has not answered completely within %s; give a file with its "+
		"descriptors, as `buf build -o x.binpb` writes it", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	out, err := newReflection(call(c, reflectionMethod)).read(ctx)
	if errors.Is(err, owner.ErrUnimplemented) {
		out, err = newReflection(call(c, reflectionMethodBefore)).read(ctx)
	}
	if errors.Is(err, owner.ErrUnimplemented) {
		return nil, fmt.Errorf("the service has no gRPC reflection; give a file with its descriptors, as "+
			"`buf build -o x.binpb` writes it: %w", err)
	}
	return out, err
}

// read reads the descriptors of all services, and returns them as a FileDescriptorSet.
func (r *reflection) read(ctx context.Context) ([]byte, error) {
	services, err := r.services(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range services {
		if strings.HasPrefix(name, "grpc.reflection.") {
			continue
		}
		if err := r.fetch(ctx, requestFileOfSymbol, name); err != nil {
			return nil, err
		}
	}
	if err := r.fetchImports(ctx); err != nil {
		return nil, err
	}
	set := &descriptorpb.FileDescriptorSet{}
	for _, path := range r.order {
		set.File = append(set.File, r.files[path])
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(set)
}

// asker sends a reflection request with one field, and returns the encoded answer.
type asker func(ctx context.Context, number protowire.Number, text string) ([]byte, error)

// reflection collects the files that a service returns by gRPC reflection.
type reflection struct {
	call  asker
	files map[string]*descriptorpb.FileDescriptorProto
	// order has the paths of the files in the order in which they were received.
	order []string
	size  int
}

func newReflection(call asker) *reflection {
	return &reflection{call: call, files: map[string]*descriptorpb.FileDescriptorProto{}}
}

// ask sends a request with one field, and returns the encoded answer, or the error that it reports.
func (r *reflection) ask(ctx context.Context, number protowire.Number, text string) ([]byte, error) {
	answer, err := r.call(ctx, number, text)
	if err != nil {
		return nil, err
	}
	return answer, reflectionError(answer)
}

// call returns an asker that calls a method of a service.
func call(c *remote.Client, name string) asker {
	method := remote.NewMethod[emptypb.Empty, emptypb.Empty](c, name)
	return func(ctx context.Context, number protowire.Number, text string) ([]byte, error) {
		in := &emptypb.Empty{} // the request is in the unknown fields, so that no generated code is needed
		in.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), text))
		var answer []byte
		answered := false
		listening, stop := context.WithCancel(ctx)
		defer stop()
		err := method.Listen(listening, in, func(out *emptypb.Empty) {
			if !answered {
				answer = out.ProtoReflect().GetUnknown()
				answered = true
				stop() // a service may leave the stream open
			}
		})
		switch {
		case answered:
			return answer, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case connect.CodeOf(err) == connect.CodeUnimplemented:
			return nil, fmt.Errorf("%w: %w", owner.ErrUnimplemented, err)
		}
		return nil, err
	}
}

// reflectionError returns the error that an answer reports; nil if it reports none.
func reflectionError(answer []byte) (err error) {
	eachField(answer, func(number protowire.Number, value []byte) {
		if number == answerError {
			eachField(value, func(number protowire.Number, message []byte) {
				if number == secondField {
					err = fmt.Errorf("the reflection of the service says: %s", shortText(string(message)))
				}
			})
			if err == nil {
				err = errors.New("the reflection of the service says that it failed")
			}
		}
	})
	return err
}

// eachField calls do for each length-delimited field of an encoded message. It stops at invalid bytes.
func eachField(raw []byte, do func(number protowire.Number, value []byte)) {
	for len(raw) > 0 {
		number, form, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return
		}
		raw = raw[n:]
		size := protowire.ConsumeFieldValue(number, form, raw)
		if size < 0 {
			return
		}
		if form == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(raw)
			do(number, value)
		}
		raw = raw[size:]
	}
}

// services returns the sorted names of the services.
func (r *reflection) services(ctx context.Context) (names []string, err error) {
	answer, err := r.ask(ctx, requestListServices, "")
	if err != nil {
		return nil, err
	}
	eachField(answer, func(number protowire.Number, list []byte) {
		if number != answerServices {
			return
		}
		eachField(list, func(number protowire.Number, one []byte) {
			eachField(one, func(of protowire.Number, name []byte) {
				if number == firstField && of == firstField {
					names = append(names, string(name))
				}
			})
		})
	})
	if len(names) > maxReflectedServices {
		return nil, fmt.Errorf("the service has %d services; at most %d are accepted", len(names), maxReflectedServices)
	}
	slices.Sort(names)
	return names, nil
}

// fetch requests a file and stores all files in the answer.
func (r *reflection) fetch(ctx context.Context, number protowire.Number, name string) error {
	answer, err := r.ask(ctx, number, name)
	if err != nil {
		return fmt.Errorf("%s: %w", shortText(name), err)
	}
	eachField(answer, func(number protowire.Number, list []byte) {
		if number != answerFiles {
			return
		}
		eachField(list, func(number protowire.Number, raw []byte) {
			if number == firstField && err == nil {
				err = r.keep(raw)
			}
		})
	})
	return err
}

func (r *reflection) keep(raw []byte) error {
	file := &descriptorpb.FileDescriptorProto{}
	if err := proto.Unmarshal(raw, file); err != nil {
		return fmt.Errorf("the reflection of the service has a file that is no descriptor: %w", err)
	}
	if r.files[file.GetName()] != nil {
		return nil
	}
	r.size += len(raw)
	if r.size > MaxDescriptors || len(r.files) == maxFiles {
		return fmt.Errorf("the descriptors have more than the %d bytes or the %d files that are accepted",
			MaxDescriptors, maxFiles)
	}
	r.files[file.GetName()] = file
	r.order = append(r.order, file.GetName())
	return nil
}

// fetchImports requests imported files until none is missing.
func (r *reflection) fetchImports(ctx context.Context) error {
	for i := 0; i < len(r.order); i++ { // r.order grows
		for _, path := range r.files[r.order[i]].GetDependency() {
			if r.files[path] != nil {
				continue
			}
			if err := r.fetch(ctx, requestFileByName, path); err != nil {
				return err
			}
			if r.files[path] == nil {
				return fmt.Errorf("the reflection of the service does not have the file %s", shortText(path))
			}
		}
	}
	return nil
}
