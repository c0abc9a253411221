// Command writeexample writes config.example.yaml to the file it is given.
package main

import (
	"log"
	"os"

	"github.com/earshot-dev/earshot/core/config"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: writeexample FILE")
	}
	if err := os.WriteFile(os.Args[1], config.Example(), 0o644); err != nil {
		log.Fatal(err)
	}
}
