package kms

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "github.com/sluicegw/sluice/schema/kms/v2/kmsv2"
)

// The maximum sizes of the parts of a wrapped key, the same as in Kubernetes.
const (
	maxCiphertext  = 1 << 10
	maxKeyID       = 1 << 10
	maxAnnotations = 32 << 10
)

// A wrapped key is stored as the message EncryptResponse of schema/kms/v2/kms.proto, which has everything that Decrypt
// needs.

// WrappingKeyID returns the id of the KMS's key with which a key was wrapped.
func (*Plugin) WrappingKeyID(wrapped []byte) (string, error) {
	in, err := decode(wrapped)
	return in.GetKeyId(), err
}

// encode returns the stored form of an answer to Encrypt, or an error if it exceeds the limits.
func encode(out *pb.EncryptResponse) ([]byte, error) {
	if err := check(out); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(out)
}

// decode returns the answer to Encrypt from its stored form.
func decode(wrapped []byte) (*pb.EncryptResponse, error) {
	in := new(pb.EncryptResponse)
	err := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(wrapped, in)
	if err == nil {
		err = check(in)
	}
	if err != nil {
		return nil, fmt.Errorf("what stands behind kms: is no wrapped key: %w", err)
	}
	return in, nil
}

// check returns an error if a part of a wrapped key is missing or exceeds its limit.
func check(m *pb.EncryptResponse) error {
	size := 0
	for name, value := range m.GetAnnotations() {
		size += len(name) + len(value)
	}
	switch n := len(m.GetCiphertext()); {
	case n == 0:
		return errors.New("the encrypted key is empty")
	case n > maxCiphertext:
		return fmt.Errorf("the encrypted key has %d bytes; at most %d are accepted", n, maxCiphertext)
	case size > maxAnnotations:
		return fmt.Errorf("the annotations have %d bytes; at most %d are accepted", size, maxAnnotations)
	}
	return checkKeyID(m.GetKeyId())
}

func checkKeyID(id string) error {
	if id == "" || len(id) > maxKeyID {
		return fmt.Errorf("the id of its key has %d bytes; 1 to %d are accepted", len(id), maxKeyID)
	}
	return nil
}
