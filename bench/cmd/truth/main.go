// Command truth scores observers of agents against conversations of which the truth is known; see package bench/truth.
// It writes docs/truth.md with -write.
//
//	go run ./bench/cmd/truth
//	go run ./bench/cmd/truth -earshot bin/earshot -observer 'ccusage=node bench/truth/usage.mjs ccusage' -write docs/truth.md
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/earshot-dev/earshot/bench/truth"
	"github.com/earshot-dev/earshot/plugins"
)

func main() {
	var o options
	flag.StringVar(&o.earshot, "earshot", "", "an executable of earshot, which observes everything with its store as well")
	flag.StringVar(&o.write, "write", "", "the file of the page, besides the standard output")
	flag.StringVar(&o.keep, "keep", "", "an empty folder for the conversations, which stay there")
	flag.BoolVar(&o.verbose, "v", false, "print each difference")
	flag.Func("observer", "NAME=COMMAND of another observer; can be repeated", func(s string) error {
		name, command, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=COMMAND", s)
		}
		o.observers = append(o.observers, observer{name, command})
		return nil
	})
	flag.Parse()
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type observer struct{ name, command string }

type options struct {
	earshot, write, keep string
	verbose              bool
	observers            []observer
}

func (o *options) run(ctx context.Context) error {
	all, err := truth.Cases(os.DirFS("."))
	if err != nil {
		return err
	}
	all = append(truth.Written(), all...)
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "earshot-truth"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	for i := range all {
		if err := all[i].WriteTo(filepath.Join(dir, truth.Folder(i))); err != nil {
			return err
		}
	}
	page := truth.Page{Formats: slices.Sorted(maps.Keys(plugins.Bundled()))}
	for i := range all {
		c, err := truth.Rehearse(plugins.Bundled()[all[i].Format](), all[i].Streams)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", all[i].Format, all[i].Name, err)
		}
		page.Add("Earshot's decoders", &all[i], c)
	}
	if o.earshot != "" {
		got, err := truth.Product(ctx, o.earshot, dir, all)
		if err != nil {
			return err
		}
		for i := range all {
			page.Add("Earshot with its store", &all[i], got[i])
		}
	}
	for _, other := range o.observers {
		for i := range all {
			c, err := truth.Observe(ctx, other.command, all[i].Format, filepath.Join(dir, truth.Folder(i)))
			if err != nil {
				return err
			}
			page.Add(other.name, &all[i], c)
		}
	}
	if o.verbose {
		fmt.Print(page.Notes())
	}
	text := page.Text(command(os.Args[1:]))
	fmt.Print(text)
	if o.write == "" {
		return nil
	}
	return os.WriteFile(o.write, []byte(text), 0o644) //nolint:gosec // a page for everybody
}

// command is how this command was called, as a shell reads it.
func command(args []string) string {
	words := []string{"go run ./bench/cmd/truth"}
	for _, a := range args {
		if strings.ContainsAny(a, " =") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
