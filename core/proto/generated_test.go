package proto_test

import (
	"encoding/base64"
	"os"
	"regexp"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	pb "github.com/earshot-dev/earshot/core/proto/earshot/decoder/v1"
)

// The generated messages of the SDKs are those of the current .proto file, which each of them
// contains in its binary form.
func TestMessagesOfTheSDKsAreGenerated(t *testing.T) {
	for file, literal := range map[string]*regexp.Regexp{
		"../sdk/python/decoder_pb2.py":    regexp.MustCompile(`b64decode\('([^'=]*)=*'\)`),
		"../sdk/typescript/decoder_pb.ts": regexp.MustCompile(`fileDesc\("([^"=]*)=*"`),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := literal.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no descriptor", file)
		}
		raw, err := base64.RawStdEncoding.DecodeString(string(found[1]))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		got := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(raw, got); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want := protodesc.ToFileDescriptorProto(pb.File_earshot_decoder_v1_decoder_proto)
		got.Name = want.Name
		plain(got)
		plain(want)
		if !proto.Equal(want, got) {
			t.Errorf("%s is old: go generate ./core/msg/schema, which needs npm for TypeScript", file)
		}
	}
}

// plain removes the optional parts of a descriptor, which differ between compilers.
func plain(d *descriptorpb.FileDescriptorProto) {
	d.SourceCodeInfo = nil
	for _, m := range d.MessageType {
		for _, f := range m.Field {
			f.JsonName = nil
		}
	}
}
