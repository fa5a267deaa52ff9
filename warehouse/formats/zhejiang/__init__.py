"""Raw formats of the Zhejiang Lab release."""
