"""What convert-utensor-to-stablehlo writes each op as."""
