package standard_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/sluicegw/sluice/backend/service/owner/standard"
)

// encoded returns a message with a length-delimited field.
func encoded(number protowire.Number, values ...string) (out string) {
	for _, value := range values {
		out += string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value))
	}
	return out
}

// FuzzErrorDetails reads damaged details of errors. Whatever a service sends, an answer has violations whose texts are
// short and valid.
func FuzzErrorDetails(f *testing.F) {
	c := fooConversion(f)
	path := encoded(1, encoded(2, "foo"), encoded(2, "spec"), encoded(2, "bar"))
	for name, raw := range map[string]string{
		"google.rpc.BadRequest": encoded(1,
			encoded(1, "foo.spec.bar")+encoded(2, "it is too long")+encoded(3, "TOO_LONG"),
			encoded(1, "spec.named[0].key")+encoded(2, "it is taken"),
			encoded(1, "metadata.labels")+encoded(2, "it has a reserved key"),
			encoded(1, "spec.named[\x91\n].key")+encoded(2, "it has an index that is no text"),
			encoded(1, "nothing.of.it")),
		"buf.validate.Violations": encoded(1, encoded(2, "string.max_len")+encoded(3, "it is too long")+encoded(5, path)),
		"google.rpc.ErrorInfo":    encoded(1, "QUOTA") + encoded(2, "foo.example") + encoded(3, encoded(1, "k")+encoded(2, "v")),
		"google.rpc.RetryInfo":    encoded(1, "\x08\x05"),
	} {
		f.Add(name, []byte(raw))
	}
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		said := connect.NewError(connect.CodeInvalidArgument, errors.New("refused"))
		detail, err := connect.NewErrorDetail(&anypb.Any{TypeUrl: "type.googleapis.com/" + name, Value: raw})
		if err != nil {
			return
		}
		for range 2 {
			said.AddDetail(detail)
		}
		found := c.Violations(said)
		if len(found) == 0 || len(found) > standard.MaxViolations {
			t.Fatalf("%d violations", len(found))
		}
		for _, v := range found {
			if !strings.HasPrefix(v.Path, "spec") && !strings.HasPrefix(v.Path, "metadata.") {
				t.Errorf("the path %q is not in the resource", v.Path)
			}
			if v.Rule == "" || v.Message == "" {
				t.Errorf("it has no rule or no message: %+v", v)
			}
			for _, text := range []string{v.Path, v.Rule, v.Message} {
				if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00") || len(text) > 2000 {
					t.Errorf("the text %q is too long or has characters that it must not have", text)
				}
			}
		}
	})
}
