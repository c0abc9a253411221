package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/earshot-dev/earshot/core/msg/schema"
	pb "github.com/earshot-dev/earshot/core/proto/earshot/decoder/v1"
)

// TestGeneratedFilesAreCurrent fails when a file does not follow from the schema.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	const root = "../../../../.."
	g, err := readTypes(filepath.Join(root, "core/msg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs {
		old, err := os.ReadFile(filepath.Join(root, o.path))
		if err != nil {
			t.Fatal(err)
		}
		want, err := o.render(g, string(old))
		if err != nil {
			t.Fatalf("%s: %v", o.path, err)
		}
		if string(old) != want {
			t.Errorf("%s is stale: run go generate ./core/msg/schema\n%s", o.path, cmp.Diff(string(old), want))
		}
	}
}

// TestProtobufIsCompiled fails when decoder.pb.go was compiled from another decoder.proto.
func TestProtobufIsCompiled(t *testing.T) {
	g, err := readTypes("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range schema.Messages {
		compiled := pb.File_earshot_decoder_v1_decoder_proto.Messages().ByName(protoreflect.Name(r.Name)).Fields()
		fields := g.protoFields(r)
		if compiled.Len() != len(fields) {
			t.Errorf("%s has %d fields, compiled %d", r.Name, len(fields), compiled.Len())
		}
		for _, f := range fields {
			c := compiled.ByNumber(protoreflect.FieldNumber(f.number))
			if c == nil || string(c.Name()) != f.name {
				t.Errorf("%s.%s = %d is compiled as %v: run go generate ./core/msg/schema", r.Name, f.name, f.number, c)
			}
		}
	}
}
