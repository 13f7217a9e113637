package standard

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// method is a compiled method of a kind, with the paths of fields in its request and its answer.
type method struct {
	protoreflect.MethodDescriptor
	// These paths begin at the request.
	keyAt, namespaceAt, parentAt, idAt, resourceAt, maskAt, tagAt fieldAt
	dryRunAt, requestAt, sizeAt, tokenAt                          fieldAt
	// nextAt and answerAt begin at the answer. If answerAt is empty, itself reports whether the answer is the resource.
	nextAt, answerAt fieldAt
	itself           bool
	// resourceItself reports whether the request is the resource.
	resourceItself bool
	operation      bool
	// headerAt is the path of the header; it begins at an event. headerNameAt and headerNamespaceAt begin at the
	// header. headerIs are the strings by which events of the kind are recognised.
	headerAt, headerNameAt, headerNamespaceAt fieldAt
	headerIs                                  []setText
	// template has the fields that are the same in all requests; nil if there are none.
	template *dynamicpb.Message
	// requires reports whether a request can have required fields.
	requires bool
	call     caller
}

// request returns a new request with the fields of the template.
func (m *method) request() *dynamicpb.Message {
	out := dynamicpb.NewMessage(m.Input())
	if m.template != nil {
		merge(out, m.template)
	}
	return out
}

// ask sends a request and waits for the answer.
func (m *method) ask(ctx context.Context, request *dynamicpb.Message) (*dynamicpb.Message, error) {
	m.complete(request)
	return m.call.Ask(ctx, request)
}

// complete sets the required fields of a request that nothing else sets.
func (m *method) complete(request *dynamicpb.Message) {
	if m.requires {
		setRequired(request, 0)
	}
}

// path returns the URL path of the method.
func (m *method) path() string { return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()) }
