package main

import "context"

func scale(context.Context, options, *env) error { return nil }
