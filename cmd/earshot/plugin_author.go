package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/decoder/scaffold"
	"github.com/earshot-dev/earshot/plugins"
)

func newPluginTest() *cobra.Command {
	var exe, testdata, output string
	var args, checks []string
	var seed uint64
	var update bool
	c := &cobra.Command{
		Use:   "test --exec FILE --testdata DIR",
		Short: "Test a decoder of any language with the conformance suite",
		Long: `Run the conformance suite against a decoder's executable: whether its messages are
those of the cases, however the bytes are cut, repeated, damaged, interleaved or
resumed. The cases are folders of DIR, each with a recorded stream (in.jsonl,
in.sse, in.ws.jsonl, in.json or frames.jsonl) and the expected messages
(want.jsonl). The exit status is 1 when a rule is broken.

With --update the decoder's messages are written as the want.jsonl of every case.
Read the difference before you keep it.`,
		Example: `  earshot plugin test --exec ./acme --testdata testdata
  earshot plugin test --exec python3 --arg decoder.py --testdata testdata --check C1 --check C7`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if exe == "" || testdata == "" {
				return usageError{errors.New("--exec and --testdata are required")}
			}
			if info, err := os.Stat(testdata); err != nil {
				return err
			} else if !info.IsDir() {
				return fmt.Errorf("%s is not a directory", testdata)
			}
			if update {
				return rewrite(c, testdata, exe, args)
			}
			results, err := conformance.Test(c.Context(), os.DirFS(testdata), seed, checks, exe, args...)
			if err != nil {
				return err
			}
			if output == "json" {
				err = writeJSON(c.OutOrStdout(), results)
			} else {
				err = conformance.Report(c.OutOrStdout(), results, seed)
			}
			if err != nil {
				return err
			}
			if conformance.Failed(results) {
				return errors.New("the decoder does not conform")
			}
			return nil
		},
	}
	c.Flags().StringVar(&exe, "exec", "", "the decoder's `EXECUTABLE`")
	c.Flags().StringArrayVar(&args, "arg", nil, "an `ARGUMENT` of the executable; may be repeated")
	c.Flags().StringVar(&testdata, "testdata", "", "`DIR` of the cases")
	c.Flags().StringArrayVar(&checks, "check", nil, "run only this `CHECK` (C1 to C14); may be repeated")
	c.Flags().BoolVar(&update, "update", false, "write the want.jsonl of every case instead")
	c.Flags().Uint64Var(&seed, "seed", 1, "`SEED` of every random choice")
	outputFlag(c, &output)
	return c
}

// rewrite writes the decoder's output as the golden files of its cases.
func rewrite(c *cobra.Command, testdata, exe string, args []string) error {
	cases, err := conformance.Load(os.DirFS(testdata))
	if err != nil {
		return err
	}
	e, err := conformance.NewExec(c.Context(), exe, args...)
	if err != nil {
		return err
	}
	defer e.Close()
	for _, one := range cases {
		out, err := conformance.Golden(c.Context(), e, one)
		if err != nil {
			return fmt.Errorf("case %s: %w", one.Name, err)
		}
		file := filepath.Join(testdata, one.Name, "want.jsonl")
		if err := os.WriteFile(file, out, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(c.OutOrStdout(), file)
	}
	return nil
}

func newPluginNew() *cobra.Command {
	var s scaffold.Settings
	var dir string
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a working example of a decoder, in Go, Python or TypeScript",
		Long: `Write a folder NAME with a program that decodes a small format and passes the
conformance suite as it is. Turn it into a decoder of your own format from there.

The folder has all that it needs of Earshot: a Go module uses the checkout that this
program was built in, or else a copy of the source, as it was when this program was
built; a Python or TypeScript program has a copy of the SDK of its language.`,
		Example: `  earshot plugin new acme --module example.com/acme
  earshot plugin new acme --language python`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s.Name = args[0]
			if s.Replace == "" && s.Language == "go" {
				s.Replace = sourceTree()
			}
			d, err := scaffold.New(s)
			if err != nil {
				return usageError{err}
			}
			written, err := d.Write(dir)
			if err != nil {
				return err
			}
			for _, f := range written {
				fmt.Fprintln(c.OutOrStdout(), f)
			}
			if plugins.Bundled()[s.Name] != nil {
				fmt.Fprintf(c.ErrOrStderr(), "%s is a bundled decoder: yours runs in its place with plugins.%s.replace_bundled, or under another name\n", s.Name, s.Name)
			}
			if _, err := exec.LookPath(d.Tool()); err != nil {
				fmt.Fprintf(c.ErrOrStderr(), "%s, which builds it, is not in the PATH\n", d.Tool())
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "\nNext:\n  cd %s && %s\n", filepath.Join(dir, s.Name), d.Next())
			return err
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "`DIR` in which the folder is made")
	c.Flags().StringVar(&s.Language, "language", "go", "`LANGUAGE` of the program: "+strings.Join(scaffold.Languages(), ", "))
	c.Flags().StringVar(&s.Replace, "replace", "", "`DIR` with the source of Earshot, for a Go module (default: the checkout of this program, or a copy)")
	c.Flags().StringVar(&s.Module, "module", "", "`PATH` of its Go module (default: earshot-NAME)")
	return c
}

// sourceTree is the folder of the source that this program was built from: the module
// above the executable or the working directory. Empty when there is none.
func sourceTree() string {
	var starts []string
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	for _, dir := range starts {
		for {
			if scaffold.IsSource(dir) {
				return dir
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return ""
}
