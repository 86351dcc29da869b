"""ONNX models as tensors: a file is read (model.py), its graph is walked (importer.py), and each
node becomes what its rule says (the files of rules by theme, collected in registry.py)."""
