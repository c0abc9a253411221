// Command writeexample writes config.example.yaml to the file in its argument: every key
// of core/config, of the sources and of the exporters, with its default and its comment.
package main

import (
	"log"
	"os"

	"github.com/earshot-dev/earshot/core/app"
	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/exporters"
)

func types() config.Types {
	return config.Types{Sources: app.SourceTypes(), Exporters: exporters.Types()}
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: writeexample FILE")
	}
	text, err := example(types())
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], text, 0o644); err != nil {
		log.Fatal(err)
	}
}
