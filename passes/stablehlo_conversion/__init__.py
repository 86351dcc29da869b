"""convert-stablehlo-to-utensor by themes: each module holds the rules of some ops."""
