// Command protogen compiles the .proto files named on its command line and runs a code
// generator on them, so that protoc need not be installed. The generator for Python, which is
// a part of protoc, is its own.
//
//	protogen -I ROOT -out DIR [-gen GENERATOR|python] [-param PARAMETER] FILE.proto ...
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	root := flag.String("I", ".", "directory that imports are relative to")
	out := flag.String("out", ".", "directory to write to")
	gen := flag.String("gen", "protoc-gen-go", "code generator, and its arguments; python is built in")
	param := flag.String("param", "paths=source_relative", "parameter of the generator")
	flag.Parse()
	if err := run(*root, *out, *gen, *param, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(root, out, gen, param string, files []string) error {
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := c.Compile(context.Background(), files...)
	if err != nil {
		return err
	}
	req := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: &param}
	for _, f := range compiled {
		req.ProtoFile = append(req.ProtoFile, protodesc.ToFileDescriptorProto(f))
	}
	generate := func(req *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
		return start(gen, req)
	}
	if gen == "python" {
		generate = python
	}
	resp, err := generate(req)
	if err != nil {
		return err
	}
	for _, f := range resp.File {
		path := filepath.Join(out, f.GetName())
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// start runs a generator as protoc does.
func start(gen string, req *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	command := strings.Fields(gen)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", gen, err)
	}
	resp := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(raw, resp); err != nil {
		return nil, err
	}
	if resp.Error != nil {
		return nil, fmt.Errorf("%s: %s", gen, *resp.Error)
	}
	return resp, nil
}
