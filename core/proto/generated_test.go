package proto_test

import (
	"encoding/base64"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	pb "github.com/earshot-dev/earshot/core/proto/earshot/decoder/v1"
)

// The generated messages of the SDKs are those of the current .proto file, which each of them
// contains in its binary form.
func TestMessagesOfTheSDKsAreGenerated(t *testing.T) {
	for _, c := range []struct {
		file     string
		literal  *regexp.Regexp
		unquote  func(string) ([]byte, error)
		generate string
	}{
		{
			"../sdk/python/decoder_pb2.py", regexp.MustCompile(`AddSerializedFile\(b'(.*)'\)`),
			func(s string) ([]byte, error) {
				s, err := strconv.Unquote(`"` + strings.NewReplacer(`\'`, `'`, `\"`, `\"`, `\\`, `\\`, `"`, `\"`).Replace(s) + `"`)
				return []byte(s), err
			},
			"protoc -I core/proto/earshot/decoder/v1 --python_out=core/sdk/python --pyi_out=core/sdk/python decoder.proto",
		},
		{
			"../sdk/typescript/decoder_pb.ts", regexp.MustCompile(`fileDesc\("([^"=]*)=*"`), base64.RawStdEncoding.DecodeString,
			"npm install @bufbuild/protobuf @bufbuild/protoc-gen-es && protoc -I core/proto/earshot/decoder/v1 --plugin=node_modules/.bin/protoc-gen-es --es_out=core/sdk/typescript --es_opt=target=ts,import_extension=js decoder.proto",
		},
	} {
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		found := c.literal.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no descriptor", c.file)
		}
		raw, err := c.unquote(string(found[1]))
		if err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		got := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(raw, got); err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		want := protodesc.ToFileDescriptorProto(pb.File_earshot_decoder_v1_decoder_proto)
		got.Name = want.Name
		plain(got)
		plain(want)
		if !proto.Equal(want, got) {
			t.Errorf("%s is old: %s", c.file, c.generate)
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
